"""The tools of a bot: `tools`, `system_tools`, and what `system_actions` and `agent_actions` name or define.

A tool that is named among the system actions, or that is a built-in action by its name, is silent.
"""

from typing import Any

from ripstop.definitions.json_tree import plain
from ripstop.definitions.problems import Position, nearest
from ripstop.definitions.references import Reference
from ripstop.definitions.yaml_tree import Value
from ripstop.styles.conversation.definition import BotTool, Purpose
from ripstop.styles.conversation.purposes import purpose_named

from .bot_fields import BotFields, Fields, inner, split_names
from .endpoints import FIELDS as OF_ENDPOINT
from .endpoints import read_endpoint
from .schema import LONGEST_NAME, MOST_TOOLS, PURPOSES, TOOL

FIELDS = (*TOOL["properties"], *OF_ENDPOINT, "input_schema", "function", "type")
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
            for path, key, item in self._reader.items_in(top.get(section), section, FIELDS):
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
        for path, _, item in self._reader.items_in(top.get(section), section, FIELDS):
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
        fields = self._reader.fields(item, path, FIELDS)
        if "function" not in fields:
            if "type" in fields and fields["type"].value.value not in ("function", "http", "api", None):
                self._reader.leave(fields["type"].key, inner(path, "type"))
            return fields
        below = self._reader.fields(fields.pop("function").value, inner(path, "function"), FIELDS)
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
