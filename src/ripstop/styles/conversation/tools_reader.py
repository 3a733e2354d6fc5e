"""The tools of a bot: `tools`, `system_tools`, and what `system_actions` and `agent_actions` name or define.

A tool that is named among the system actions, or that is a built-in action by its name, is silent.
"""

import re
from collections.abc import Collection, Iterator
from typing import Any

from ripstop.definitions.json_tree import plain
from ripstop.definitions.problems import Position, nearest
from ripstop.definitions.references import Reference
from ripstop.definitions.yaml_tree import Value
from ripstop.kernel.errors import UsageError
from ripstop.security.addresses import parse_address

from .bot_fields import BotFields, Fields, as_text, first_of, inner, split_names
from .definition import BotTool, Endpoint, Purpose
from .events import purpose_named
from .schema import (
    EFFECTS,
    ENDPOINT,
    LONGEST_HEADER,
    LONGEST_NAME,
    LONGEST_TIMEOUT,
    LONGEST_URL,
    METHODS,
    MOST_HEADERS,
    MOST_TOOLS,
    PURPOSES,
    TOOL,
)

# HTTP addresses in a configuration: absolute, without credentials, with placeholders only where they are harmless.
#
# URL, headers and body are templates: `{name}` and `#name#` are filled in when a call is made. An address that cannot
# be called is a warning, because bots come with addresses that only their own network knows; one whose host a model
# could choose is an error.


ENDPOINT_FIELDS = tuple(ENDPOINT["properties"])
PLACEHOLDER = re.compile(r"(?<!\$)\{([\w.-]{1,64})\}|#([\w.-]{1,64})#")
_SECRET = re.compile(r"\$\{[^}]*\}")
_BEFORE_PATH = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?]*)")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_CREDENTIALS = re.compile(r"authorization|cookie|.*(?:api-?key|token|secret)", re.IGNORECASE)


def read_endpoint(reader: BotFields, owner: Fields, path: str, parameters: Collection[str] | None) -> Endpoint | None:
    """The endpoint of a tool, a skill or a flow: its field `endpoint`, or `url` and the others beside it.

    `parameters` are the arguments that a call has; none if that is not known.
    """
    entry = first_of(owner, "endpoint")
    if entry is None:
        if first_of(owner, "url") is None:
            return None
        return _Endpoint(reader, path, parameters).read(
            {key: owner[key] for key in ENDPOINT_FIELDS if key in owner}, None
        )
    path = inner(path, "endpoint")
    value = entry.value
    if isinstance(value.value, str):
        return _Endpoint(reader, path, parameters).read({"url": entry}, value)
    if not isinstance(value.value, dict):
        reader.leave(value.place, path, f"an endpoint must be {reader.mapping_word} or a URL, but this is {value.kind}")
        return None
    fields = reader.fields(value, path, ENDPOINT_FIELDS)
    if "effect" in owner and "effect" not in fields:
        fields["effect"] = owner["effect"]
    return _Endpoint(reader, path, parameters).read(fields, value)


class _Endpoint:
    def __init__(self, reader: BotFields, path: str, parameters: Collection[str] | None) -> None:
        self._reader = reader
        self._path = path
        self._parameters = parameters

    def read(self, fields: Fields, owner: Value | None) -> Endpoint:
        reader = self._reader
        url = self._url(fields, owner)
        headers = self._headers(fields, url)
        body = plain(fields["body"].value) if "body" in fields else None
        self._no_secrets(fields, "body", body)
        effect: Any = reader.one_of(fields, "effect", ("", *EFFECTS), "")
        endpoint = Endpoint(
            url=url,
            method=self._method(fields, body),
            headers=headers,
            body=body,
            timeout=reader.number(fields, "timeout", 30.0, 0, LONGEST_TIMEOUT),
            effect=effect if effect in EFFECTS else "",
        )
        self._placeholders(fields, owner, endpoint)
        self._effect(fields, endpoint)
        return endpoint

    # Fields

    def _url(self, fields: Fields, owner: Value | None) -> str:
        reader = self._reader
        url = reader.text(fields, "url", path=self._path)
        if not url:
            place = fields["url"].value.place if "url" in fields else owner.place if owner else None
            if place:
                reader.warn(
                    place, "the endpoint has no 'url', so calls to it fail", reader.field_hint.format(key="url")
                )
            return ""
        place = fields["url"].value.place
        if len(url) > LONGEST_URL or not url.isprintable():
            reader.problem(place, f"a URL must be one line of at most {LONGEST_URL} characters")
            return ""
        found = _BEFORE_PATH.match(url)
        if found is None or found[1].lower() not in ("http", "https"):
            text = f"{url[:100]!r} is not an absolute http(s) URL, so calls to it fail"
            reader.warn(place, text, "write https://HOST/PATH")
        elif PLACEHOLDER.search(found[2]):
            text = f"a placeholder chooses the host of {url[:100]!r}"
            reader.problem(place, text, "placeholders can be in the path and in the query")
        elif "@" in found[2]:
            text = "the URL has a user name or a password in it"
            reader.problem(place, text, "use a header with ${NAME}, which is read from the environment")
        else:
            try:
                parse_address(found[0])
            except UsageError:
                reader.warn(place, f"{url[:100]!r} does not name a host, so calls to it fail")
        self._no_secrets(fields, "url", url)
        return url

    def _no_secrets(self, fields: Fields, key: str, value: Any) -> None:
        found = next((match[0] for text in _texts(value) if (match := _SECRET.search(text))), "")
        if found:
            text = f"{found[:80]!r} is not filled in here: secrets go into headers only"
            self._reader.warn(fields[key].value.place, text, "move it to a header")

    def _method(self, fields: Fields, body: Any) -> str:
        reader = self._reader
        method = reader.text(fields, "method", path=self._path).upper()
        if not method:
            if body not in (None, {}, [], "") and "body" in fields:
                reader.warn(fields["body"].key, "there is a body but no 'method', so it is GET", "add `method: POST`")
            return "GET"
        if method not in METHODS:
            text = f"there is no method {method[:40]!r}"
            reader.problem(fields["method"].value.place, text, f"known are {', '.join(METHODS)}")
            return "GET"
        return method

    def _headers(self, fields: Fields, url: str) -> dict[str, str]:
        reader, path = self._reader, inner(self._path, "headers")
        if "headers" not in fields or fields["headers"].value.value is None:
            return {}
        value = fields["headers"].value
        pairs = list(_pairs(value))
        if not pairs and value.value not in ({}, []):
            reader.leave(value.place, path, f"'headers' must be {reader.mapping_word}, but this is {value.kind}")
        reader.within(pairs, MOST_HEADERS, "headers", value.place)
        headers: dict[str, str] = {}
        for name, one in pairs[:MOST_HEADERS]:
            text = as_text(one)
            if text is None:
                reader.leave(one.place, inner(path, name), f"a header must be text, but this is {one.kind}")
            elif not _HEADER.fullmatch(name) or not text.isprintable() or len(text) > LONGEST_HEADER:
                shown = f"{name[:60]!r} cannot be a header"
                reader.problem(one.place, shown, f"its name is one word, its value one line of {LONGEST_HEADER}")
            else:
                headers[name] = text
                self._credentials(name, text, one, url)
        return headers

    def _credentials(self, name: str, text: str, value: Value, url: str) -> None:
        if _CREDENTIALS.fullmatch(name) and text.strip() and not _SECRET.search(text) and not PLACEHOLDER.search(text):
            said = f"the header {name!r} looks like a secret that is written in this file"
            self._reader.warn(value.place, said, "write ${NAME}, and put it into the environment")
        elif _SECRET.search(text) and url.lower().startswith("http:"):
            self._reader.warn(value.place, f"the secret in {name!r} goes over a connection that is not encrypted")

    # The whole

    def _placeholders(self, fields: Fields, owner: Value | None, endpoint: Endpoint) -> None:
        if self._parameters is None:
            return
        texts = [endpoint.url, *endpoint.headers.values(), *_texts(endpoint.body)]
        named = [found[1] for text in texts for found in PLACEHOLDER.finditer(text) if found[1]]
        missing = [name for name in dict.fromkeys(named) if name not in self._parameters]
        if missing:
            place = owner.place if owner else fields["url"].key
            shown = ", ".join(f"{{{name}}}" for name in missing[:10]) + (", …" if len(missing) > 10 else "")
            text = f"no parameter provides {shown}, so only variables of the session can"
            self._reader.warn(place, text, "add to `parameters` what the model has to give")

    def _effect(self, fields: Fields, endpoint: Endpoint) -> None:
        if not endpoint.effect:
            return
        place, reads = fields["effect"].value.place, endpoint.method in ("GET", "HEAD")
        if reads and endpoint.effect != "pure":
            text = f"{endpoint.method} changes nothing, but its effect is {endpoint.effect!r}"
            self._reader.warn(place, text, "leave `effect` out, or use POST")
        elif not reads and endpoint.effect == "pure":
            text = f"a {endpoint.method} that is 'pure' is repeated if it is not known whether it took effect"
            self._reader.warn(place, text, "keep it only if repeating it changes nothing")


def _pairs(value: Value) -> Iterator[tuple[str, Value]]:
    """The headers in a mapping, or in a list of mappings with `key` or `name`, and `value`."""
    if isinstance(value.value, dict):
        for key, entry in value.value.items():
            yield key, entry.value
    elif isinstance(value.value, list):
        for item in value.value:
            named = first_of(item.value, "key", "name") if isinstance(item.value, dict) else None
            if named is not None and isinstance(named.value.value, str) and "value" in item.value:
                yield named.value.value, item.value["value"].value


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


TOOL_FIELDS = (*TOOL["properties"], *ENDPOINT_FIELDS, "input_schema", "function", "type")
SECTIONS = ("tools", "system_tools")
SYSTEM, AGENT = "system_actions", "agent_actions"


def read_tools(reader: BotFields, top: Fields) -> tuple[BotTool, ...]:
    return _Tools(reader).read(top)


class _Tools:
    def __init__(self, reader: BotFields) -> None:
        self._reader = reader
        self._found: dict[str, BotTool] = {}
        self._named: dict[str, Position] = {}
        """The system actions that are named, and where."""

    def read(self, top: Fields) -> tuple[BotTool, ...]:
        if SYSTEM in top:
            self._named = {name: place for _, name, place in self._names(top, SYSTEM)}
        for section in (*SECTIONS, SYSTEM, AGENT):
            for path, key, item in self._reader.items_in(top.get(section), section, TOOL_FIELDS):
                if section in SECTIONS or isinstance(item.value, dict):
                    self._tool(path, key, item, is_system=section == SYSTEM)
                elif not isinstance(item.value, str):
                    self._reader.leave(item.place, path, f"a tool must be a name, but this is {item.kind}")
        for section in (SYSTEM, AGENT):
            for path, name, place in self._names(top, section):
                if name not in self._found:
                    self._undeclared(path, name, place, is_system=section == SYSTEM)
        tools = list(self._found.values())
        if len(tools) > MOST_TOOLS:
            place = self._reader.places["tool", tools[MOST_TOOLS].name]
            self._reader.problem(place, f"there are {len(tools)} tools; at most {MOST_TOOLS} can be")
        for tool in tools:
            if tool.endpoint is None and not tool.purpose and not tool.name.endswith("*"):
                self._reader.references.append(Reference("tool", tool.name, self._reader.places["tool", tool.name]))
        return tuple(tools)

    def _names(self, top: Fields, section: str) -> list[tuple[str, str, Position]]:
        """The names in a list of actions, with their paths."""
        found = []
        for path, _, item in self._reader.items_in(top.get(section), section, TOOL_FIELDS):
            if isinstance(item.value, str):
                found += [(path, name, item.place) for name in split_names(item.value)]
        return found

    def _undeclared(self, path: str, name: str, place: Position, is_system: bool) -> None:
        purpose = purpose_named(name, is_system)
        if not purpose:
            near = nearest(name, self._found)
            hint = f"did you mean {near!r}?" if near else "it has to be a function of this process, or an MCP tool"
            self._reader.warn(place, f"{path!r} names {name[:60]!r}, which 'tools' does not declare", hint)
        name = self._reader.name(place, name, "a tool", LONGEST_NAME)
        self._reader.places["tool", name] = place
        self._found[name] = BotTool(name, system=is_system or bool(purpose), purpose=purpose)

    # One tool

    def _tool(self, path: str, key: str, item: Value, is_system: bool) -> None:
        reader = self._reader
        if isinstance(item.value, str):
            for name in split_names(item.value):
                self._add(BotTool(name), item.place, is_system)
            return
        if not isinstance(item.value, dict):
            reader.leave(item.place, path, f"a tool must be {reader.mapping_word}, but this is {item.kind}")
            return
        fields = self._fields(path, item)
        parameters = self._parameters(path, fields)
        name = reader.text(fields, "name", path=path) or key
        place = fields["name"].value.place if "name" in fields else item.place
        if not name:
            name = next(name for number in range(1, MOST_TOOLS * 100) if (name := f"tool_{number}") not in self._found)
            reader.warn(place, f"the tool has no name, so it is called {name!r}", reader.field_hint.format(key="name"))
        declared = parameters.get("properties") if "parameters" in fields or "input_schema" in fields else None
        tool = BotTool(
            name=name,
            description=reader.text(fields, "description", path=path),
            parameters=parameters,
            endpoint=read_endpoint(reader, fields, path, declared if isinstance(declared, dict) else None),
            system=reader.field(fields, "system", bool, False),
            purpose=self._purpose(fields),
        )
        if not tool.description:
            text = f"the tool {name[:60]!r} has no description, so the model has only its name to go by"
            reader.warn(place, text, reader.field_hint.format(key="description"))
        self._add(tool, place, is_system, has_purpose="purpose" in fields)

    def _fields(self, path: str, item: Value) -> Fields:
        """The fields of a tool; in the form of a function call they are below `function`."""
        fields = self._reader.fields(item, path, TOOL_FIELDS)
        if "function" not in fields:
            if "type" in fields and fields["type"].value.value not in ("function", "http", "api", None):
                self._reader.leave(fields["type"].key, inner(path, "type"))
            return fields
        below = self._reader.fields(fields.pop("function").value, inner(path, "function"), TOOL_FIELDS)
        return {**below, **fields}

    def _purpose(self, fields: Fields) -> Purpose:
        said: Any = self._reader.one_of(fields, "purpose", ("", *PURPOSES), "")
        return said if said in PURPOSES else ""

    def _add(self, tool: BotTool, place: Position, is_system: bool, has_purpose: bool = False) -> None:
        reader = self._reader
        name = reader.name(place, tool.name, "a tool", LONGEST_NAME)
        if name in self._found:
            reader.problem(place, f"there is a tool {name!r} already", "keep one of them")
            return
        is_system = is_system or name in self._named
        purpose = tool.purpose if has_purpose else purpose_named(name, is_system)
        reader.places["tool", name] = place
        self._found[name] = BotTool(
            name,
            tool.description,
            tool.parameters,
            tool.endpoint,
            system=tool.system or is_system or bool(purpose),
            purpose=purpose,
        )

    def _parameters(self, path: str, fields: Fields) -> dict[str, Any]:
        """A JSON Schema. A list of parameters, and parameters by name, become one."""
        key = "parameters" if "parameters" in fields else "input_schema"
        if key not in fields or fields[key].value.value in (None, ""):
            return {}
        value = fields[key].value
        data = plain(value)
        if isinstance(data, dict):
            if not data or "properties" in data or isinstance(data.get("type"), str | list) or "$ref" in data:
                return data
            return {"type": "object", "properties": {name: _property(one) for name, one in data.items()}}
        if isinstance(data, list) and all(isinstance(one, str) or _named(one) for one in data):
            named = [{"name": one} if isinstance(one, str) else one for one in data]
            required = [one["name"] for one in named if one.get("required") is True]
            kept = {one["name"]: {k: v for k, v in one.items() if k not in ("name", "required")} for one in named}
            return {"type": "object", "properties": kept, **({"required": required} if required else {})}
        text = f"'parameters' must be a JSON Schema, but this is {value.kind}"
        self._reader.leave(value.place, inner(path, key), text)
        return {}


def _named(one: Any) -> bool:
    return isinstance(one, dict) and isinstance(one.get("name"), str)


def _property(one: Any) -> dict[str, Any]:
    if isinstance(one, dict):
        return one
    return (
        {"type": one}
        if one in ("string", "number", "integer", "boolean", "array", "object")
        else {"description": str(one)}
    )
