"""The collaboration guide that `{{COLLABORATION_GUIDE}}` stands for, unless a `guide.md` replaces it.

There is a short one for local models. They are small, and repeat a long guide instead of doing the task below it; and
their replies are held to a schema, so that nothing has to be explained about the form.
"""

from collections.abc import Sequence
from typing import Any

from .. import reply
from . import condition
from .condition import Compare, Expression, Literal, Name

ENGLISH = """\
## How we work together

- You are one member of a small team. You see what the colleague before you said, and the next one sees what you say.
- Shared results are files under `collab/`. Notes that only you need stay in your own folder.
- Write files first. Say what you did last, in one JSON object, and write nothing after it.

The JSON object has two parts:

{
  "content": "what you did, found or decided, in a few plain sentences for your colleagues",
  "decisions": {}
}

`decisions` holds the fields that the task below asks for. The next step is chosen from these fields alone,
so be honest in them: true only for what is really done.
"""

CHINESE = """\
## 我们怎样一起工作

- 你是一个小团队的一员。你能看到上一位同事说的话，下一位同事会看到你说的话。
- 共享的成果是 `collab/` 下的文件；只有你自己需要的笔记放在你自己的目录里。
- 先写文件，最后用一个 JSON 对象说明你做了什么，之后不要再写任何内容。

这个 JSON 对象有两部分：

{
  "content": "用几句平实的话告诉同事：你做了什么、发现了什么、决定了什么",
  "decisions": {}
}

`decisions` 里写任务要求的字段。下一步只由这些字段决定，所以请如实填写：真正做完的事才写 true。
"""

GUIDES = {"en": ENGLISH, "zh": CHINESE}
SHORT_GUIDES = {"en": "Answer in JSON.", "zh": "用 JSON 回答。"}


# The JSON Schema of a state's reply, from the decision fields that its conditions use and its prompt shows.
#
# For models that can be held to a schema: such a reply always can be read and always decides.


ENGINE_NAMES = ("max_turns_exceeded", "error_occurred", "turns", "turn_count")
"""Names in conditions that the engine itself knows, besides `turn_count_<state>`."""
TURNS_OF = "turn_count_"

LONGEST_CONTENT = 2000
BOOLEAN = {"type": "boolean"}


def is_engine_name(name: str) -> bool:
    """Whether the engine gives this name its value, or would if there were such a state."""
    return name in ENGINE_NAMES or name.startswith(TURNS_OF)


def reply_schema(prompt: str, conditions: Sequence[Expression]) -> dict[str, Any]:
    decisions = _fields(prompt, conditions)
    return {
        "type": "object",
        "properties": {
            "content": {"type": "string", "maxLength": LONGEST_CONTENT},
            "decisions": {
                "type": "object",
                "properties": decisions,
                "required": list(decisions),
                "additionalProperties": False,
            },
        },
        "required": ["content", "decisions"],
        "additionalProperties": False,
    }


def _fields(prompt: str, conditions: Sequence[Expression]) -> dict[str, dict[str, Any]]:
    """Every decision field that a state's conditions look at, with the type they need, and those that
    the example in its prompt has beside them."""
    found: dict[str, dict[str, Any]] = {}
    for node in conditions:
        _collect(node, found)
    for name, value in shown_decisions(prompt).items():
        if isinstance(value, bool | int | float | str) and not is_engine_name(name):
            found.setdefault(name, _type_of(value))
    return found


def shown_decisions(prompt: str) -> dict[str, Any]:
    """The decisions of the JSON example in a prompt, if there is one that can be read."""
    try:
        example, _ = reply.last(prompt, "decisions")
    except reply.NoReply:
        return {}
    decisions = example["decisions"]
    return decisions if isinstance(decisions, dict) else {}


def _collect(node: Expression, found: dict[str, dict[str, Any]]) -> None:
    match node:
        case (
            Compare(left=Name(name=name), right=Literal(value=value))
            | Compare(left=Literal(value=value), right=Name(name=name))
        ):
            _add(name, _type_of(value), found)
        case _:
            for name_node in condition.names(node) if isinstance(node, Compare | Name) else ():
                _add(name_node.name, BOOLEAN, found)
            for part in ("left", "right", "operand"):
                if not isinstance(node, Compare) and hasattr(node, part):
                    _collect(getattr(node, part), found)


def _add(name: str, schema: dict[str, Any], found: dict[str, dict[str, Any]]) -> None:
    if is_engine_name(name):
        return
    if found.get(name, BOOLEAN) == BOOLEAN:
        found[name] = schema


def _type_of(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return BOOLEAN
    return {"type": "string", "maxLength": 60} if isinstance(value, str) else {"type": "number"}
