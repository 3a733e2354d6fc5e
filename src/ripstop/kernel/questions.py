"""What a question is to a person, and what a person's words mean as the answer: the one place where words become one.

- Words alone are a choice only if all of them are the choice or its label, whatever their case. Anything else is the
  question's `other` choice, word for word; without one it is refused.
- Words next to a choice are allowed only if the choice was made explicitly.
- Fields are converted to their types. An empty one counts as not given, because forms also send empty fields.
- Fields without a word are not an empty answer: what they are given for must be said (`ask.empty` could be a refusal).
"""

import unicodedata
from collections.abc import Mapping
from typing import Any

from .desk_kinds import DOUBTED, GUARDED, HANDOFF, PAUSED, QUESTION, REVIEWED
from .effects import AskPerson, Field, PersonAnswered
from .errors import UsageError
from .run import DOUBT, GUARD, OUTAGE
from .text_limits import shown, whole_characters

# Names of people and agents, wherever one enters: who does something, and who is to do it.
#
# A name is shown on one line, next to others, and is part of files that other programs read. So it has no characters
# that act on a terminal or are not seen; a joiner between letters is ordinary text.


MAX_NAME = 200
"""Characters of a name; the id of a run can be one."""
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode's categories of control and format characters, lone surrogates, and separators of lines and paragraphs."""
_JOINERS = "\u200c\u200d"


def name_problem(name: str) -> str:
    """Why this cannot be the name of a person or an agent; empty if it can. An empty name is nobody's, and can."""
    if len(name) > MAX_NAME:
        return f"{shown(name)} is too long for a name: {len(name):,} characters, at most {MAX_NAME}"
    for char in name:
        if unicodedata.category(char) in _UNSEEN and char not in _JOINERS:
            return f"{shown(name)} cannot be a name: U+{ord(char):04X} in it is a character that is not shown"
    return ""


def checked_name(name: str) -> str:
    """The name. Raises `UsageError` if it cannot be one."""
    if problem := name_problem(name):
        raise UsageError(f"{problem}.")
    return name


MAX_TEXT = 1_000_000
"""Characters of an answer, or of an edited document."""
MAX_WHOLE_NUMBER = 2**53
"""Beyond it, not every whole number is one for every reader of JSON."""
_BY_PURPOSE = {GUARD: GUARDED, DOUBT: DOUBTED, OUTAGE: PAUSED, HANDOFF: HANDOFF}
"""What a question is by its purpose; another one is a review if it has a document, else a question."""
_YES, _NO = ("true", "yes", "y", "1"), ("false", "no", "n", "0")


def kind_of(ask: AskPerson) -> str:
    """What a question is to a person: one of `desk_kinds.KINDS`."""
    return _BY_PURPOSE.get(ask.purpose) or (REVIEWED if ask.document else QUESTION)


def read_answer(
    ask: AskPerson,
    words: str = "",
    *,
    choice: str = "",
    document: str | None = None,
    fields: Mapping[str, Any] | None = None,
    by: str = "",
) -> PersonAnswered:
    """The answer that was meant. Raises `UsageError` that says what would be valid."""
    if len(words) > MAX_TEXT or (document is not None and len(document) > MAX_TEXT):
        raise UsageError(f"An answer has at most {MAX_TEXT:,} characters.")
    text = whole_characters(words)
    if not choice and ask.choices and not (_has_values(fields) and not text.strip()):
        choice, text = _meant(ask, text)
    if ask.choices and choice not in ask.choices:
        said = shown(choice or words)
        raise UsageError(f"{said} is not an answer to this question; choose from {_options(ask)}.")
    if choice and not ask.choices:
        raise UsageError(f"This question has no choices, so {shown(choice)} cannot be one; answer in words.")
    if ask.purpose == HANDOFF and choice == ask.other and not text.strip():
        raise UsageError(f"{choice!r} needs the words that the user is sent; there are none.")
    given = _fields(ask, fields or {}, choice)
    if not (choice or text.strip() or given):
        raise UsageError("An empty answer is not an answer to this question.")
    if document is not None and (not ask.edit or choice != ask.edit):
        where = f"; choose {ask.edit!r} with it" if ask.edit else ""
        raise UsageError(f"An edited document cannot come with this answer{where}.")
    if ask.edit and choice == ask.edit and document is None:
        raise UsageError(f"{choice!r} needs the edited document.")
    edited = None if document is None else whole_characters(document)
    return PersonAnswered(choice=choice, text=text, document=edited, fields=given, by=checked_name(by))


def _has_values(fields: Mapping[str, Any] | None) -> bool:
    return any(value is not None and value != "" for value in (fields or {}).values())


def _meant(ask: AskPerson, text: str) -> tuple[str, str]:
    """The choice that words mean, and the words that are left."""
    whole = text.strip()
    if not whole:
        return ask.empty, ""
    choice = choice_named(ask.choices, whole)
    return (choice, "") if choice else (ask.other, text)


def choice_named(choices: Mapping[str, str], words: str) -> str:
    """The choice that words are or whose label they are, the case ignored; empty if they are neither.

    The exact ones go first, because two choices can differ in case alone. Then a choice goes before a label.
    """
    whole, folded = words.strip(), words.strip().casefold()
    named = [*((choice, choice) for choice in choices), *((label, choice) for choice, label in choices.items())]
    exact = (choice for name, choice in named if name == whole)
    alike = (choice for name, choice in named if name.casefold() == folded)
    return next(exact, "") or next(alike, "") if whole else ""


def _options(ask: AskPerson) -> str:
    """The choices of a question, for people."""
    return ", ".join(ask.choices) + (f", or any other text ({ask.other})" if ask.other else "")


def _fields(ask: AskPerson, said: Mapping[str, Any], choice: str) -> dict[str, Any]:
    for name in said:
        if name not in ask.fields:
            there = f"there are: {', '.join(ask.fields)}" if ask.fields else "it has none"
            raise UsageError(f"This question has no field {shown(name)}; {there}.")
    given = {name: value for name, value in said.items() if value is not None and value != ""}
    missing = [name for name, field in ask.fields.items() if field.required and name not in given]
    if missing and (not ask.empty or choice != ask.empty):
        raise UsageError(f"The field {missing[0]!r} is missing.")
    return {name: read_field(name, ask.fields[name], value) for name, value in given.items()}


def read_field(name: str, field: Field, value: Any) -> Any:
    """A value of a field's type. Raises `UsageError`."""
    match field.type:
        case "number" | "integer":
            return _number(name, value, whole=field.type == "integer")
        case "boolean":
            return _boolean(name, value)
        case "one_of":
            return _allowed(name, field, value)
        case "some_of":
            some = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
            if not isinstance(some, list | tuple):
                raise UsageError(f"{name} must be a list, not {shown(value)}.")
            return list(dict.fromkeys(_allowed(name, field, one) for one in some if one != ""))
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise UsageError(f"{name} must be a text of at most {MAX_TEXT:,} characters.")
    return whole_characters(value)


def _number(name: str, value: Any, whole: bool) -> float | int:
    kind = "a whole number" if whole else "a number"
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError
        number = int(str(value)) if whole else float(value)
    except (ValueError, OverflowError):
        raise UsageError(f"{name} must be {kind}, not {shown(value)}.") from None
    if not -MAX_WHOLE_NUMBER <= number <= MAX_WHOLE_NUMBER:
        raise UsageError(f"{name} must be {kind} between -2**53 and 2**53.")
    return number


def _boolean(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    said = value.strip().lower() if isinstance(value, str) else ""
    if said not in (*_YES, *_NO):
        raise UsageError(f"{name} must be yes or no, not {shown(value)}.")
    return said in _YES


def _allowed(name: str, field: Field, value: Any) -> str:
    if not isinstance(value, str) or value not in field.allowed:
        raise UsageError(f"{name} must be one of {', '.join(field.allowed)}, not {shown(value)}.")
    return value
