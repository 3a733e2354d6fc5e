"""The result of a run: text for a person, data for a program, and files.

A journal keeps it as the JSON that programs read: the text is `content`, the files are `files`, and the keys of the
data are beside them. Data that is not an object, or that has one of these names itself, is `data`. Results of older
runs, and of styles that know nothing of this, are other JSON; what they have is found.
"""

from typing import Any

from msgspec import Struct

from .effects import RunFinished

CONTENT, FILES, DATA = "content", "files", "data"


class Result(Struct, frozen=True):
    """What a run comes to. A style ends a run with it (`Step.end`); a parent reads it (`read_result`)."""

    text: str = ""
    """For a person, in full: never the reason why the run has ended."""
    data: Any = None
    """A JSON value for programs; `None` for none."""
    files: tuple[str, ...] = ()
    """Files that came out of it: in the run's workspace, or with an absolute path."""

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {CONTENT: self.text}
        if isinstance(self.data, dict) and not {CONTENT, FILES} & self.data.keys():
            found |= self.data
        elif self.data is not None:
            found[DATA] = self.data
        return {**found, FILES: list(self.files)} if self.files else found

    @property
    def whole_text(self) -> str:
        """The text, with a list of the files below it: for a parent that hands on text alone."""
        listed = "\n".join(f"- {path}" for path in self.files)
        return "\n\n".join(filter(None, (self.text, listed)))


NO_RESULT = Result()


def read_result(value: Any) -> Result:
    """A result from the JSON of a journal, whatever its shape; a text alone is a result as well."""
    if isinstance(value, str):
        return Result(value)
    if not isinstance(value, dict):
        return NO_RESULT if value is None else Result(data=value)
    text, named = value.get(CONTENT), value.get(FILES)
    files = tuple(one for one in named if isinstance(one, str)) if isinstance(named, list) else ()
    data = {key: one for key, one in value.items() if key != CONTENT and not (key == FILES and files)}
    return Result(text if isinstance(text, str) else "", data or None, files)


def handed_on(text: str, finished: RunFinished) -> str:
    """What a parent makes of the text of a child: why it ended takes its place only if it did not complete."""
    return text if text.strip() or finished.outcome == "completed" else finished.because
