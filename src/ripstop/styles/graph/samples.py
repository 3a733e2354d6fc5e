"""Small graphs with answers that lead a run of each to its end, for tests that go over all styles."""

from typing import Any

import msgspec

from ripstop.kernel.effects import AgentReplied, ToolCall, ToolReturned, Usage
from ripstop.kernel.style import Sample

from .definition import END, SAVE, Agent, ExitCondition, Graph, State, Transition

USAGE = Usage(input_tokens=12, output_tokens=5)
FILE = "collab/poem.md\n```\nRain on the tin roof\n```\n\n"
READ = ToolCall(id="1", tool="read_file", arguments={"path": "collab/poem.md"})
AGENTS = (Agent("poet"), Agent("critic", "ask"))


def samples() -> tuple[Sample, ...]:
    return (_loop(), _files(), _tool_calls(), _saved())


def _said(content: str, before: str = "", **decisions: Any) -> AgentReplied:
    body = msgspec.json.encode({"content": content, "decisions": decisions}).decode()
    return AgentReplied(text=before + body, usage=USAGE)


def _loop() -> Sample:
    """A critic sends the poem back once, then likes it."""
    write = State("write", "poet", "Write about {{topic}}. {{last_agent_content}}", (Transition("judge", "ready"),))
    judge = State(
        "judge",
        "critic",
        "Judge it: {{last_agent_content}}",
        (Transition(END, "approved AND score >= 8"), Transition("write", "NOT approved OR score < 8")),
    )
    graph = Graph("poem", "write", AGENTS, (write, judge), initial_message="A poem.", values={"topic": "rain"})
    answers = (
        _said("Rain.", ready=True),
        _said("Too short.", approved=False, score=3),
        _said("Rain on the tin roof.", ready=True),
        _said("Good.", approved=True, score=9),
    )
    return Sample("loop", graph, answers, input="A poem about rain.", arguments={"values": {"topic": "rain in May"}})


def _files() -> Sample:
    """A file in the text of a reply is written before the reply counts."""
    graph = Graph("files", "write", AGENTS, (State("write", "poet", "Write a file."),), initial_message="A poem.")
    return Sample("files", graph, (_said("Written.", FILE), ToolReturned(value="written")))


def _tool_calls() -> Sample:
    """An agent reads a file, is corrected once, and decides."""
    state = State("judge", "critic", "Read it, then decide.", (Transition(END, "approved"), Transition("judge")))
    graph = Graph("tools", "judge", AGENTS, (state,), initial_message="Is the poem good?")
    answers = (
        AgentReplied(text="Let me see.", calls=(READ,), usage=USAGE),
        ToolReturned(value="Rain on the tin roof"),
        AgentReplied(text="It is good.", usage=USAGE),
        _said("It is good.", approved=True),
    )
    return Sample("tool_calls", graph, answers)


def _saved() -> Sample:
    """The turn limit ends it before anything is approved; it is saved, so it can be resumed."""
    state = State("write", "poet", "Write a line.", (Transition(END, "done"), Transition("write", "NOT done")))
    exits = (ExitCondition("max_turns_exceeded", SAVE),)
    graph = Graph("saved", "write", AGENTS, (state,), initial_message="Lines.", max_turns=2, exit_conditions=exits)
    return Sample("saved", graph, (_said("One.", done=False, line=1), _said("Two.", done=False, line=2)))
