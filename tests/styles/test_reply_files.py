"""What becomes of the files and tool calls of a reply: their order, their limits, and what could not be written."""

import json
from typing import Any

import msgspec
import pytest

from ripstop.kernel.effects import AgentReplied, AskAgent, CallTool, Failed, ToolCall, ToolReturned
from ripstop.kernel.events import Asked, Forked, Warned
from ripstop.kernel.step import decide_again
from ripstop.styles.graph.definition import END, Agent, Graph, State, Transition
from ripstop.styles.graph.style import GraphStyle
from ripstop.styles.reply_operations import MAX_FILES, MAX_TOOL_CALLS
from ripstop.styles.turn import Corrected, Denied
from ripstop.testing import given
from ripstop.testing.scenarios import Given

STYLE = GraphStyle()
OK = ToolReturned(value="written")
FULL = Failed(reason="collab/a.md: No space left on device.")
TOOLS = ("write_file", "edit_file", "read_file", "list_files", "search_files", "pay")
DONE = json.dumps({"content": "done", "decisions": {"go": True}})


def graph(**more: Any) -> Graph:
    state = State(name="a", agent="maker", prompt="go", transitions=(Transition(to=END, condition="go"),))
    agents = (Agent(name="maker", tools=TOOLS),)
    return Graph(name="g", start="a", agents=agents, states=(state,), initial_message="x", max_turns=3, **more)


def begun(**more: Any) -> Given:
    return given(STYLE, graph(**more))


def whole(path: str, content: str = "new") -> str:
    return f"{path}\n```\n{content}\n```\n\n"


def edit(path: str, search: str = "old", replace: str = "new") -> str:
    return f"{path}\n```\n<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n```\n\n"


def reply(*parts: str, recorded: bool = False) -> AgentReplied:
    return AgentReplied(text="".join(parts) + DONE, recorded=recorded)


def calls(*tools: str) -> AgentReplied:
    made = tuple(ToolCall(id=str(n), tool=tool, arguments={"path": f"{n}.md"}) for n, tool in enumerate(tools))
    return AgentReplied(text="So:", calls=made)


def asked(story: Given) -> list[Any]:
    """The arguments of all open tool calls."""
    assert story.run is not None
    opened = story.run.open.values()
    return [STYLE.arguments(o.state, o.command) for o in opened if isinstance(o.command, CallTool)]


def prompt(story: Given) -> str:
    """The last message of the prompt that is open."""
    return str(messages(story)[-1].text)


def messages(story: Given) -> Any:
    assert story.run is not None
    (opened,) = (o for o in story.run.open.values() if isinstance(o.command, AskAgent))
    return STYLE.render(opened.state, opened.command).messages  # type: ignore[arg-type]  # it is an AskAgent


def warnings(story: Given) -> list[str]:
    return [record.event.text for record in story.records if isinstance(record.event, Warned)]


# Order


def test_the_next_file_is_asked_for_when_the_one_before_is_answered() -> None:
    story = begun()
    fact: Any = reply(whole("a.md", "1"), edit("a.md"), whole("a.md", "2"))
    for wanted in ("1\n", None, "2\n"):
        story.when(fact).then_asks(CallTool)
        assert [arguments.get("content") for arguments in asked(story)] == [wanted]
        fact = OK
    story.when(OK).then_ends("completed")


@pytest.mark.parametrize("result", [OK, Failed(reason="no", fault="agent"), FULL])
def test_only_adjacent_calls_that_read_are_open_side_by_side(result: Any) -> None:
    story = begun()
    story.when(calls("read_file", "list_files", "write_file", "read_file", "pay", "read_file"))
    groups = []
    while any(isinstance(o.command, CallTool) for o in story.run.open.values()):  # type: ignore[union-attr]  # started
        groups.append([arguments["path"] for arguments in asked(story)])
        for _ in groups[-1]:
            story.tell(result)
    assert groups == [["0.md", "1.md"], ["2.md"], ["3.md"], ["4.md"], ["5.md"]]
    assert [message.call_id for message in messages(story) if message.role == "tool"] == list("012345")


def test_files_in_the_text_come_before_the_calls_of_the_same_reply() -> None:
    story = begun()
    call = ToolCall(id="c", tool="read_file", arguments={"path": "a.md"})
    story.when(AgentReplied(text=whole("a.md"), calls=(call,)))
    assert asked(story) == [{"path": "a.md", "content": "new\n"}]
    story.tell(OK)
    assert asked(story) == [{"path": "a.md"}]
    story.tell(ToolReturned(value="new\n"))
    assert [(m.role, m.text) for m in messages(story)[-1:]] == [("tool", "new\n")]


def test_a_file_beside_a_call_that_could_not_be_written_is_told_to_the_agent() -> None:
    story = begun()
    call = ToolCall(id="c", tool="read_file", arguments={"path": "a.md"})
    story.tell(AgentReplied(text=whole("a.md"), calls=(call,)))
    story.tell(FULL)
    story.tell(Failed(reason="There is no 'a.md'.", fault="agent"))
    assert "'a.md': collab/a.md: No space left on device" in prompt(story)


def test_a_fork_at_the_reply_begins_with_its_first_file() -> None:
    old = begun()
    before = old.run
    old.tell(reply(whole("a.md", "1"), whole("a.md", "2")))
    forked = decide_again(STYLE, old.contents, before, old.records[2], Forked(run="story", at=3), "fork", 0)
    assert [o.command.source for o in forked.run.open.values() if isinstance(o.command, CallTool)] == [(3, 0)]


def test_a_run_that_asked_for_all_calls_at_once_goes_on_when_all_are_answered() -> None:
    """As versions before 0.2 recorded it."""
    story = begun()
    story.tell(calls("write_file", "pay"))
    run = story.run
    assert run is not None
    old = Asked(command=CallTool(tool="pay", agent="maker", source=(3, 1)))
    state = STYLE.evolve(run.state, 5, old)
    assert state.turn is not None and state.turn.exchanges[-1].last == 1 and set(state.turn.pending) == {4, 5}


# Limits


def test_calls_beyond_the_limit_are_denied_and_each_is_answered() -> None:
    story = begun()
    story.tell(calls(*["read_file"] * (MAX_TOOL_CALLS + 50)))
    assert story.run is not None and len(asked(story)) == MAX_TOOL_CALLS
    for _ in range(MAX_TOOL_CALLS):
        story.tell(OK)
    tools = [message for message in messages(story) if message.role == "tool"]
    assert len(tools) == MAX_TOOL_CALLS + 50
    assert {f"at most {MAX_TOOL_CALLS}" in message.text for message in tools[MAX_TOOL_CALLS:]} == {True}
    assert sum(isinstance(record.event, Denied) for record in story.records) == 1


def test_files_beyond_the_limit_are_named_and_asked_for_again() -> None:
    story = begun()
    story.tell(reply(*(whole(f"f{n}.md") for n in range(MAX_FILES + 3))))
    for _ in range(MAX_FILES):
        story.tell(OK)
    told = prompt(story)
    assert f"at most {MAX_FILES}" in told and "'f200.md'" in told and "'f202.md'" in told
    story.tell(reply(*(whole(f"f{n}.md") for n in range(MAX_FILES, MAX_FILES + 3))))
    for _ in range(3):
        told_last = story.when(OK)
    told_last.then_ends("completed")


# What could not be written


@pytest.mark.parametrize("fault", ["tool", "ours", "agent"])
def test_the_agent_is_told_what_failed_and_what_is_done_and_asked_again(fault: str) -> None:
    story = begun()
    story.tell(reply(whole("a.md"), whole("b.md"), edit("c.md")))
    story.tell(Failed(reason="No space left.", fault=fault))
    story.tell(OK)
    story.when(Failed(reason="c.md was not edited", fault=fault)).then(Corrected, Asked)
    told = prompt(story)
    assert "- 'a.md': No space left.\n- 'c.md': c.md was not edited.\n" in told
    assert "do not send them again: b.md" in told
    story.tell(reply(whole("a.md"), edit("c.md", "better")))
    story.tell(OK)
    story.when(OK).then_ends("completed")
    assert warnings(story) == []


@pytest.mark.parametrize("again", [whole("a.md"), "", whole("other.md", "something else")])
def test_what_is_still_missing_after_the_last_reask_is_an_error(again: str) -> None:
    story = begun()
    story.tell(reply(whole("a.md")))
    story.tell(FULL)
    told = story.when(reply(again))
    while "a.md" in again and not told.run.ended:
        told = story.when(FULL)
    while not told.run.ended:
        told = story.when(OK)
    told.then_ends("failed", "'a.md'")


def test_reasks_bounds_how_often_files_are_asked_for() -> None:
    for reasks in (0, 3):
        story = begun(reasks=reasks)
        for _ in range(reasks + 1):
            story.tell(reply(whole("a.md")))
            told = story.when(FULL)
        told.then_ends("failed", "No space left")
        assert sum(isinstance(record.event, Corrected) for record in story.records) == reasks


@pytest.mark.parametrize(
    ("first", "second", "settled"),
    [
        (whole("a.md"), whole("./a.md"), True),
        (whole("../a.md"), whole("a.md"), True),
        (whole("/etc/a.md", "same"), whole("plain.md", "same"), True),
        (edit("src/a.md"), edit("collab/src/a.md"), True),
        (edit("a.md"), whole("a.md"), True),
        (whole("a.md"), edit("a.md"), False),
        (edit("a.md", "1") + edit("a.md", "2"), edit("a.md", "3"), False),
        (edit("a.md", "1") + edit("a.md", "2"), edit("a.md", "3") + edit("a.md", "4"), True),
    ],
)
def test_a_failure_is_settled_by_the_same_file(first: str, second: str, settled: bool) -> None:
    story = begun()
    told = story.when(reply(first))
    while told.commands and isinstance(told.commands[0], CallTool):
        told = story.when(Failed(reason="no", fault="agent"))
    told = story.when(reply(second))
    while told.commands and isinstance(told.commands[0], CallTool):
        told = story.when(OK)
    told.then_ends("completed" if settled else "failed")


def test_in_one_reply_only_the_whole_file_makes_good_a_failed_edit() -> None:
    story = begun(reasks=0)
    story.tell(reply(edit("a.md"), whole("a.md")))
    story.tell(Failed(reason="no", fault="agent"))
    story.when(OK).then_ends("completed")
    story = begun(reasks=0)
    story.tell(reply(edit("a.md"), edit("a.md", "else")))
    story.tell(Failed(reason="no", fault="agent"))
    story.when(OK).then_ends("failed")


def test_an_edit_that_was_made_is_not_made_again_when_the_agent_repeats_it() -> None:
    story = begun()
    story.tell(AgentReplied(text=edit("a.md") + whole("b.md")))
    story.tell(OK)
    story.when(OK).then(Corrected, Asked)
    assert "do not send them again: a.md, b.md" in prompt(story)
    story.tell(reply(edit("a.md"), whole("b.md")))
    assert [arguments["path"] for arguments in asked(story)] == ["b.md"]
    story.when(OK).then_ends("completed")


def test_a_repeated_edit_is_made_again_in_a_file_that_was_written_again() -> None:
    story = begun()
    story.tell(AgentReplied(text=whole("a.md") + edit("a.md")))
    story.tell(OK)
    story.tell(OK)
    story.tell(reply(whole("a.md"), edit("a.md")))
    story.tell(OK)
    assert [arguments.get("search") for arguments in asked(story)] == ["old\n"]


def test_a_recording_is_never_asked_again() -> None:
    story = begun()
    story.tell(reply(whole("a.md"), edit("b.md"), recorded=True))
    story.tell(FULL)
    story.when(Failed(reason="no such text", fault="agent")).then_ends("completed")
    assert warnings(story) == [
        "a file was not delivered: 'a.md': collab/a.md: No space left on device",
        "a file was not delivered: 'b.md': no such text",
    ]


def test_a_recording_without_decisions_is_an_error_at_once() -> None:
    begun().when(AgentReplied(text="No JSON.", recorded=True)).then_ends("failed", "broke the protocol")


def test_a_failed_call_is_left_to_the_agent_but_a_full_disk_is_not() -> None:
    call = ToolCall(id="c", tool="write_file", arguments={"path": "a.md", "content": "x"})
    for fault, outcome in (("agent", "completed"), ("tool", "failed")):
        story = begun(reasks=0)
        story.tell(AgentReplied(calls=(call,)))
        story.tell(Failed(reason="no", fault=fault))
        story.when(reply()).then_ends(outcome)
        assert warnings(story) == (
            ["a call to write a file failed and was not made good: 'a.md': no"] if fault == "agent" else []
        )


WRONGLY = Failed(reason="write_file was called wrongly: Object contains unknown field `file`.", fault="agent")


def write_call(**arguments: str) -> AgentReplied:
    return AgentReplied(calls=(ToolCall(id="c", tool="write_file", arguments=arguments),))


def test_a_call_with_wrong_arguments_that_is_not_repeated_is_a_warning() -> None:
    story = begun()
    story.tell(write_call(file="a.md", content="x"))
    story.tell(WRONGLY)
    story.when(reply()).then_ends("completed")
    assert warnings(story) == [f"a call to write a file failed and was not made good: {WRONGLY.reason[:-1]}"]


@pytest.mark.parametrize("good", [write_call(path="a.md", content="x"), reply(whole("a.md", "x"))])
def test_a_file_written_later_makes_good_a_call_with_wrong_arguments(good: AgentReplied) -> None:
    story = begun()
    story.tell(write_call(file="a.md", content="x"))
    story.tell(WRONGLY)
    story.tell(good)
    told = story.when(OK)
    if good.calls:
        told = story.when(reply())
    told.then_ends("completed")
    assert warnings(story) == []


def test_one_file_makes_good_one_of_two_wrong_calls() -> None:
    story = begun()
    for _ in range(2):
        story.tell(write_call(file="a.md", content="x"))
        story.tell(WRONGLY)
    story.tell(write_call(path="a.md", content="x"))
    story.tell(OK)
    story.when(reply()).then_ends("completed")
    assert len(warnings(story)) == 1


@pytest.mark.parametrize(("tool", "warned"), [("pay", True), ("read_file", False)])
def test_a_failed_call_of_another_tool_is_a_warning_unless_it_only_reads(tool: str, warned: bool) -> None:
    story = begun()
    story.tell(calls(tool))
    story.tell(Failed(reason="There is no tool 'pay'.", fault="agent"))
    story.when(reply()).then_ends("completed")
    said = "a call of 'pay' failed and was not made good: There is no tool 'pay'"
    assert warnings(story) == ([said] if warned else [])


@pytest.mark.parametrize(("then", "made_good"), [((), False), (("read_file",), False), (("pay",), True)])
def test_a_denied_call_that_is_not_made_good_is_one_warning(then: tuple[str, ...], made_good: bool) -> None:
    story = begun()
    story.tell(AgentReplied(calls=(ToolCall(id="0", tool="no_such"),)))
    if then:
        story.tell(calls(*then))
        story.tell(OK)
    story.when(reply()).then_ends("completed")
    reason = f"agent 'maker' may not call 'no_such'; it may call: {', '.join(TOOLS)}"
    denied = f"a tool call was denied and was not made good: {reason}"
    assert warnings(story) == ([] if made_good else [denied])


def test_an_agent_that_may_not_write_is_not_asked_for_files() -> None:
    asking = msgspec.structs.replace(graph(), agents=(Agent(name="maker", type="ask"),))
    given(STYLE, asking).when(reply(whole("a.md"))).then_ends("completed")


@pytest.mark.parametrize(
    ("tools", "instead"), [(("write_file",), "; it may write the whole file"), (("read_file",), "")]
)
def test_an_edit_of_an_agent_that_may_not_edit_is_called_an_edit(tools: tuple[str, ...], instead: str) -> None:
    story = given(STYLE, msgspec.structs.replace(graph(), agents=(Agent(name="maker", tools=tools),)))
    story.tell(reply(edit("collab/b.md")))
    assert f"agent 'maker' may not edit files, so the edit of 'collab/b.md' was not made{instead}" in warnings(story)


def test_a_broken_off_edit_is_asked_for_again() -> None:
    story = begun()
    text = "a.md\n```\n<<<<<<< SEARCH\nold\n"
    story.when(AgentReplied(text=text)).then(Denied, Corrected, Asked)
    assert "ends in the middle of the edit" in prompt(story)
