"""The flows of a bot: fixed procedures that take over, started by the model or by a pattern in a message."""

from collections.abc import Collection
from typing import Any

from ripstop.definitions.problems import Position
from ripstop.definitions.references import Reference
from ripstop.definitions.yaml_tree import Value

from .actions import LONGEST_MATCHED
from .bot_fields import BotFields, Fields, as_text, first_of, inner, split_names
from .definition import BotFlow, BotTool, Match
from .events import purpose_named
from .patterns import MOST_STEPS_IN_ALL, SlowPattern, steps_of
from .schema import FLOW, LONGEST_NAME, MATCHES, MOST_FLOWS, MOST_PATTERNS
from .tools_reader import ENDPOINT_FIELDS, read_endpoint

SECTION = "flows"
PATTERNS = ("trigger_patterns", "patterns", "keywords", "triggers", "trigger")
FIELDS = (*FLOW["properties"], *ENDPOINT_FIELDS, *PATTERNS, "match", "parameters")


def read_flows(reader: BotFields, top: Fields, tools: Collection[BotTool]) -> tuple[BotFlow, ...]:
    return _Flows(reader, {tool.name for tool in tools}).read(top)


class _Flows:
    def __init__(self, reader: BotFields, tools: Collection[str]) -> None:
        self._reader = reader
        self._tools = tools
        self._steps = 0

    def read(self, top: Fields) -> tuple[BotFlow, ...]:
        reader = self._reader
        items = list(reader.items_in(top.get(SECTION), SECTION, FIELDS))
        if items and not reader.within(items, MOST_FLOWS, "flows", items[0][2].place):
            items = items[:MOST_FLOWS]
        found: dict[str, BotFlow] = {}
        for number, (path, key, item) in enumerate(items, 1):
            flow = self._flow(path, key or f"flow_{number}", item)
            if flow is None:
                continue
            if flow.id in found:
                reader.problem(item.place, f"there is a flow {flow.id!r} already", "give it an `id` of its own")
            reader.places["flow", flow.id] = item.place
            found.setdefault(flow.id, flow)
        return tuple(found.values())

    def _flow(self, path: str, key: str, item: Value) -> BotFlow | None:
        reader = self._reader
        if not isinstance(item.value, dict):
            reader.leave(item.place, path, f"a flow must be {reader.mapping_word}, but this is {item.kind}")
            return None
        fields = reader.fields(item, path, FIELDS)
        id = reader.text(fields, "id", "flow_id", "name", path=path) or key
        match = self._match(path, fields)
        return BotFlow(
            id=reader.name(item.place, " ".join(id.split()), "a flow", LONGEST_NAME),
            description=reader.text(fields, "description", "name", path=path),
            match=match,
            patterns=self._patterns(path, fields, match),
            workflow=self._workflow(path, fields),
            tool=self._tool(path, fields),
            endpoint=read_endpoint(reader, fields, path, None),
        )

    def _match(self, path: str, fields: Fields) -> Match:
        reader = self._reader
        kind = reader.text(fields, "type", path=path).lower()
        entry = first_of(fields, "match_type", "match")
        how: Any = (as_text(entry.value) or "").strip().lower() if entry else ""
        if kind not in ("", "intent", "keyword", "keywords"):
            reader.leave(fields["type"].value.place, inner(path, "type"), f"there is no type of flow {kind[:60]!r}")
            return "intent"
        if kind == "intent" or how == "intent" or not (kind or how or "keywords" in fields):
            return "intent"
        if how and how not in MATCHES and entry:
            text = f"there is no match_type {how[:60]!r}, so the model decides about this flow"
            reader.warn(entry.value.place, text, f"known are {', '.join(MATCHES)}")
            return "intent"
        return how or "contains"

    def _workflow(self, path: str, fields: Fields) -> str:
        name = self._reader.text(fields, "workflow", path=path)
        if name:
            self._reader.references.append(Reference("workflow", name, fields["workflow"].value.place))
        return name

    def _tool(self, path: str, fields: Fields) -> str:
        name = self._reader.text(fields, "tool", path=path)
        if name:
            place = fields["tool"].value.place
            name = self._reader.name(place, name, "a tool", LONGEST_NAME)
            if name not in self._tools and not purpose_named(name):
                self._reader.references.append(Reference("tool", name, place))
        return name

    # Patterns

    def _patterns(self, path: str, fields: Fields, match: Match) -> tuple[str, ...]:
        found: list[str] = []
        for key in PATTERNS:
            for text, place in self._written(inner(path, key), fields.get(key), match):
                if text not in found and self._is_right(text, place, match):
                    found.append(text)
        if len(found) > MOST_PATTERNS:
            place = next(fields[key].key for key in PATTERNS if key in fields)
            self._reader.within(found, MOST_PATTERNS, "patterns", place)
        return tuple(found[:MOST_PATTERNS])

    def _written(self, path: str, entry: Any, match: Match) -> list[tuple[str, Position]]:
        if entry is None or entry.value.value is None:
            return []
        value: Value = entry.value
        if isinstance(value.value, str) and match in ("exact", "contains"):
            return [(part, value.place) for part in split_names(value.value)]
        found = []
        for item in value.value if isinstance(value.value, list) else [value]:
            text = as_text(item)
            if text is None or isinstance(item.value, list):
                self._reader.leave(item.place, path, f"a pattern must be text, but this is {item.kind}")
            elif text.strip():
                found.append((text.strip(), item.place))
            else:
                self._reader.warn(item.place, "an empty pattern would match every message, so it is left out")
        return found

    def _is_right(self, text: str, place: Position, match: Match) -> bool:
        reader = self._reader
        if match in ("exact", "contains") and len(text) > LONGEST_MATCHED:
            reader.warn(place, f"only the first {LONGEST_MATCHED} characters of a message are compared with it")
        if match != "regex":
            return True
        try:
            self._steps += steps_of(text)
        except SlowPattern as error:
            reader.problem(place, f"the pattern {text[:60]!r} cannot be used: {error}", "make it simpler")
            return False
        if self._steps > MOST_STEPS_IN_ALL:
            reader.problem(
                place, "the patterns of all flows together could take too long", "use fewer, or simpler ones"
            )
            return False
        return True
