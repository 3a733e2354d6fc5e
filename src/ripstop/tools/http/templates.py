"""Templates of URLs, headers and bodies, as configurations have them.

- `{name}` is a value that the agent gave or, failing that, one that is known of the session; `#name#` is the latter.
- What is put in is never read as a template again, so no value can name another, and none can name a secret.
- In a body, a string that is nothing but a placeholder becomes the value itself, with its type; without a value, null.
  Inside a longer string a value is text, and without one it is empty.
- In a URL, values are percent-encoded, and only after the host. A path must not change by what is put in: there a value
  is needed, and it cannot be `.` or `..`.
- In a header, `${NAME}` is a secret.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import msgspec

from ripstop.engine.performers import Refused
from ripstop.kernel.errors import UsageError
from ripstop.security.endpoints import split_url

NAME = r"[^\W\d][\w.-]*"
_PLACEHOLDER = re.compile(rf"\{{(?P<given>{NAME})\}}|#(?P<known>{NAME})#")
_HEADER = re.compile(rf"\$\{{(?P<secret>[A-Za-z_][A-Za-z0-9_]*)\}}|{_PLACEHOLDER.pattern}")


class TemplateValues(NamedTuple):
    """What placeholders stand for."""

    params: Mapping[str, Any] = {}
    """What the agent gave."""
    variables: Mapping[str, Any] = {}
    """What is known of the session."""

    def of(self, placeholder: "re.Match[str]") -> Any:
        """The value, or `None` if there is none."""
        given = placeholder["given"]
        if given is None:
            return self.variables.get(placeholder["known"])
        found = self.params.get(given)
        return self.variables.get(given) if found is None else found


def text_of_value(value: Any) -> str:
    """A value inside a longer text."""
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def fill_text(template: str, values: TemplateValues) -> str:
    return _PLACEHOLDER.sub(lambda found: text_of_value(values.of(found)), template)


def fill_json(template: Any, values: TemplateValues) -> Any:
    """A body with everything put in. Keys are not templates."""
    if isinstance(template, str):
        whole = _PLACEHOLDER.fullmatch(template)
        return values.of(whole) if whole else fill_text(template, values)
    if isinstance(template, dict):
        return {key: fill_json(one, values) for key, one in template.items()}
    if isinstance(template, list | tuple):
        return [fill_json(one, values) for one in template]
    return template


def fill_header(template: str, values: TemplateValues, secrets: Mapping[str, str]) -> str:
    """`secrets`: the value of every one that the template names."""

    def put_in(found: "re.Match[str]") -> str:
        return secrets[found["secret"]] if found["secret"] else text_of_value(values.of(found))

    return _HEADER.sub(put_in, template)


def fill_url(template: str, values: TemplateValues) -> str:
    """A URL with everything put in. Raises `Refused`."""
    try:
        base, rest = split_url(template)
    except UsageError as error:
        raise Refused(str(error), "definition") from error
    if "{" in base or rest.startswith("#"):
        raise Refused(
            "The URL has a placeholder before its path. Scheme, host and port of an endpoint must be written out.",
            "definition",
        )
    if "${" in rest:
        raise Refused("The URL names a secret (`${…}`), but a secret can only be in a header.", "definition")
    path, mark, query = rest.partition("?")
    return base + _filled_path(path, values) + mark + _filled(query, lambda found: _quoted(values.of(found)))


def _filled_path(template: str, values: TemplateValues) -> str:
    def put_in(found: "re.Match[str]") -> str:
        text = _quoted(values.of(found))
        if not text:
            raise Refused(f"The URL needs a value for {found[0]}, and there is none.", "agent")
        return text

    path = _filled(template, put_in)
    for before, after in zip(template.split("/"), path.split("/"), strict=True):
        if after != before and unquote(after) in (".", ".."):
            raise Refused(f"{after!r} cannot be put into the path of a URL: it would lead elsewhere.", "agent")
    return path


def _filled(template: str, put_in: Callable[["re.Match[str]"], str]) -> str:
    """A part of a URL: what is put in is percent-encoded, and of the rest only what is not ASCII."""
    pieces: list[str] = []
    end = 0
    for found in _PLACEHOLDER.finditer(template):
        pieces += (_ascii(template[end : found.start()]), put_in(found))
        end = found.end()
    return "".join((*pieces, _ascii(template[end:])))


def _ascii(text: str) -> str:
    return "".join(one if one.isascii() else _quoted(one) for one in text)


def _quoted(value: Any) -> str:
    return quote(text_of_value(value).encode("utf-8", "replace"), safe="")
