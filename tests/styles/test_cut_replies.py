"""Replies that reached the model's limit of length, and calls whose arguments cannot be read."""

import msgspec
import pytest

from ripstop.kernel.effects import AgentReplied, AskAgent, CallTool, ToolCall, ToolReturned
from ripstop.kernel.events import Ended
from ripstop.styles.graph.definition import Agent, Graph
from ripstop.styles.turn import GO_ON, MAX_MALFORMED, MAX_PARTS, Denied
from ripstop.testing import given
from ripstop.testing.scenarios import Given
from tests.styles.graph.test_graph import STYLE, graph, state
from tests.styles.handoff.loops import document, settle_views, worked


def writer() -> Graph:
    agent = Agent(name="agent_a", type="coder", tools=("pay", "write_file"))
    return msgspec.structs.replace(graph(state("a")), agents=(agent,))


def part(text: str, *, cut: bool = False) -> AgentReplied:
    return AgentReplied(text=text, cut=cut)


def unreadable(tool: str = "pay") -> AgentReplied:
    return AgentReplied(calls=(ToolCall(id="c", tool=tool, malformed="the arguments are not JSON: '{'"),))


def prompt_of(story: Given) -> list[tuple[str, str]]:
    assert story.run is not None
    opened = story.run.open[story.opened(AskAgent)]
    assert isinstance(opened.command, AskAgent)
    return [(one.role, one.text) for one in STYLE.render(opened.state, opened.command).messages]


def test_the_rest_of_a_cut_reply_is_asked_for_and_joined() -> None:
    story = given(STYLE, writer())
    story.when(part('{"content": "half', cut=True))
    assert prompt_of(story)[-2:] == [("assistant", '{"content": "half'), ("user", GO_ON)]
    told = story.when(part(' and half", "decisions": {}}'))
    told.then_ends("completed")
    assert told.run.state.last.content == "half and half"


@pytest.mark.parametrize("at", [10, 20, 28, 33])
def test_a_file_whose_reply_was_cut_anywhere_is_written_whole(at: int) -> None:
    text = 'notes.md\n```\nfirst\nsecond\n```\n{"content": "done", "decisions": {}}'
    story = given(STYLE, writer())
    story.when(part(text[:at], cut=True))
    told = story.when(part(text[at:]))
    (call,) = [command for command in told.commands if isinstance(command, CallTool)]
    assert story.run is not None
    assert STYLE.arguments(told.run.state, call) == {"path": "notes.md", "content": "first\nsecond\n"}
    story.when(ToolReturned(value="written")).then_ends("completed")


def test_a_reply_that_never_comes_to_its_end_fails_the_turn() -> None:
    story = given(STYLE, writer())
    for _ in range(MAX_PARTS - 1):
        story.tell(part("and so on ", cut=True))
    told = story.when(part("and so on ", cut=True))
    (ended,) = [event for event in told.decided if isinstance(event, Ended)]
    assert ended.outcome == "failed" and f"limit of length {MAX_PARTS} times" in ended.because


def test_a_call_that_cannot_be_read_is_not_made_and_the_agent_is_told() -> None:
    story = given(STYLE, writer())
    told = story.when(unreadable())
    assert not [command for command in told.commands if isinstance(command, CallTool)]
    assert [event.reason for event in told.decided if isinstance(event, Denied)] == [
        "'pay' was not called: the arguments are not JSON: '{'"
    ]
    assert prompt_of(story)[-1] == ("tool", "Error: 'pay' was not called: the arguments are not JSON: '{'")
    story.tell(AgentReplied(calls=(ToolCall(id="d", tool="pay", arguments={"n": 1}),)))
    story.tell(ToolReturned(value="paid"))
    story.when(part('{"content": "ok", "decisions": {}}')).then_ends("completed")


def test_an_agent_that_never_writes_readable_calls_fails_the_turn() -> None:
    story = given(STYLE, writer())
    for _ in range(MAX_MALFORMED - 1):
        story.tell(unreadable())
    told = story.when(unreadable())
    (ended,) = [event for event in told.decided if isinstance(event, Ended)]
    assert ended.outcome == "failed" and f"{MAX_MALFORMED} times" in ended.because


def test_what_a_document_is_told_in_two_parts_is_read_as_one() -> None:
    done = '{"content": "All checked.", "decisions": {"action": "complete", "result": "42 pages"}}'
    story = document()()
    settle_views(story)
    for told in worked("ann"):
        story.tell(told)
    story.tell(part(done[:50], cut=True))
    story.tell(part(done[50:]))
    assert story.run is not None
    assert story.run.state.said.result == "42 pages"
    assert story.run.state.document.status == "completed"
