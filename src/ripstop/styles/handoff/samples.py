"""Documents that roles bring to an end, for tests that go over all styles."""

import json

import msgspec

from ripstop.kernel.effects import AgentReplied, Failed, ToolReturned
from ripstop.kernel.style import Sample

from .calls import PublishedDocument
from .definition import Policy, Role

_WRITTEN = ToolReturned(value=msgspec.to_builtins(PublishedDocument(file="document.md", done="written")))
_TEAM = (Role("writer", "You write."), Role("reviewer", "You review."))


def _reply(action: str, to: str = "", result: str = "", next_action: str = "") -> AgentReplied:
    decisions = {"action": action, "to": to, "next_action": next_action, "result": result}
    return AgentReplied(text=json.dumps({"content": f"I {action} it.", "decisions": decisions}))


SAMPLES = (
    Sample(
        "completed by its owner",
        Policy(roles=_TEAM),
        (_WRITTEN, _reply("complete", result="A haiku."), _WRITTEN),
        input="Write a haiku about rain",
    ),
    Sample(
        "handed over and completed",
        Policy(roles=_TEAM),
        (
            _WRITTEN,
            _reply("pass", to="reviewer", result="A draft.", next_action="Review it"),
            _WRITTEN,
            _reply("complete", result="A haiku."),
            _WRITTEN,
        ),
        input="写一首关于雨的俳句",
    ),
    Sample(
        "terminated after a failure",
        Policy(roles=_TEAM, attempts=2),
        (_WRITTEN, Failed(reason="The model is overloaded."), _reply("terminate"), _WRITTEN),
        input="Prove that 2 + 2 = 5",
        arguments={"owner": "writer", "creator": "ann", "title": "Sums"},
    ),
)
