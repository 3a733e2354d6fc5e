"""The skills of a bot: `skills` and `action_books`, which are the same thing under two names."""

from collections.abc import Collection

from ripstop.definitions.problems import nearest
from ripstop.definitions.yaml_tree import Value

from .bot_fields import BotFields, Fields, first_of, inner
from .definition import BotTool, Skill
from .events import purpose_named
from .schema import LONGEST_NAME, MOST_SKILLS, SKILL
from .tools_reader import ENDPOINT_FIELDS, read_endpoint

FIELDS = (*SKILL["properties"], *ENDPOINT_FIELDS, "description", "tool", "parameters")
SECTIONS = ("skills", "action_books")


def read_skills(reader: BotFields, top: Fields, tools: Collection[BotTool]) -> tuple[Skill, ...]:
    found: dict[str, Skill] = {}
    items = [one for section in SECTIONS for one in reader.items_in(top.get(section), section, FIELDS)]
    if items and not reader.within(items, MOST_SKILLS, "skills", items[0][2].place):
        items = items[:MOST_SKILLS]
    for path, key, item in items:
        skill = _skill(reader, path, key, item, {tool.name for tool in tools})
        if skill is None:
            continue
        named = skill.id
        id = named or _free("skill", found, 1)
        if id in found:
            if named and _same(found[id], skill):
                reader.warn(item.place, f"the skill {id[:60]!r} is there twice", "keep one of them")
                continue
            id = _free(id, found, 2)
            text = f"there is a skill {named[:60]!r} already, so this one is called {id[:60]!r}"
            reader.warn(item.place, text, "give it an `id` of its own")
        if not named and any(_same(one, skill) for one in found.values()):
            reader.warn(item.place, "the same skill is there already", "keep one of them")
            continue
        reader.places["skill", id] = item.place
        found[id] = Skill(id, skill.condition, skill.action, skill.tools, skill.endpoint)
    return tuple(found.values())


def _skill(reader: BotFields, path: str, key: str, item: Value, tools: Collection[str]) -> Skill | None:
    if isinstance(item.value, str):
        id = reader.name(item.place, " ".join(key.split()), "a skill", LONGEST_NAME)
        return Skill(id=id, action=item.value.strip())
    if not isinstance(item.value, dict):
        reader.leave(item.place, path, f"a skill must be {reader.mapping_word}, but this is {item.kind}")
        return None
    fields = reader.fields(item, path, FIELDS)
    id = reader.text(fields, "id", "action_id", "name", path=path) or key
    return Skill(
        id=reader.name(item.place, " ".join(id.split()), "a skill", LONGEST_NAME),
        condition=reader.text(fields, "condition", path=path),
        action=reader.text(fields, "action", "description", path=path),
        tools=_tools(reader, fields, path, tools),
        endpoint=read_endpoint(reader, fields, path, None),
    )


def _tools(reader: BotFields, fields: Fields, path: str, known: Collection[str]) -> tuple[str, ...]:
    found: list[str] = []
    key = "tools" if first_of(fields, "tools") else "tool"
    for named in reader.names(fields.get(key), inner(path, key)):
        name = reader.name(named.place, named.value, "a tool", LONGEST_NAME)
        if name not in found:
            found.append(name)
        if name not in known:
            wanted = purpose_named(name)
            near = next((one for one in known if wanted and purpose_named(one) == wanted), "") or nearest(name, known)
            if wanted and not near:
                continue  # every bot has it
            hint = f"did you mean {near!r}?" if near else "declare it in `tools`"
            reader.warn(named.place, f"the skill names a tool {name[:60]!r} that is not declared", hint)
    return tuple(found)


def _same(one: Skill, other: Skill) -> bool:
    return (one.condition, one.action, one.tools, one.endpoint) == (
        other.condition,
        other.action,
        other.tools,
        other.endpoint,
    )


def _free(base: str, taken: Collection[str], number: int) -> str:
    base = base[: LONGEST_NAME - 6]  # there is room for the number
    while f"{base}_{number}" in taken:
        number += 1
    return f"{base}_{number}"
