"""The graph style: given a graph and replies, it goes where the decisions lead."""

import json
from typing import Any

import msgspec
import pytest

from ripstop.kernel.effects import AgentReplied, AskAgent, CallTool, Failed, Limits, TimerFired, ToolCall, ToolReturned
from ripstop.kernel.errors import RunHasEnded, UsageError
from ripstop.kernel.events import (
    Asked,
    Ended,
    Forked,
    GuardTripped,
    ResumeRequested,
    RunSettings,
    SettingsChanged,
    TurnRestarted,
    Warned,
    Withdrawn,
)
from ripstop.kernel.progress import NOTHING, digest
from ripstop.kernel.run import fingerprint
from ripstop.styles.final_object import final_decisions
from ripstop.styles.graph.definition import END, VARIABLES, Agent, ExitCondition, Graph, State, Transition
from ripstop.styles.graph.state import VALUES, TurnFinished
from ripstop.styles.graph.style import GraphStyle
from ripstop.styles.reply import NoReply
from ripstop.styles.turn import Corrected, Denied
from ripstop.testing import given
from ripstop.testing.scenarios import Given

STYLE = GraphStyle()
TOOLS = ("add", "write_file", "edit_file")


def state(name: str, *transitions: tuple[str, str], prompt: str = "Go. {{last_agent_content}}") -> State:
    return State(
        name=name,
        agent=f"agent_{name}",
        prompt=prompt,
        transitions=tuple(Transition(to=to, condition=condition) for to, condition in transitions),
    )


def graph(*states: State, **more: Any) -> Graph:
    agents = tuple(Agent(name=s.agent, type="coder", tools=TOOLS) for s in states)
    return Graph(name="g", start=states[0].name, agents=agents, states=states, initial_message="the goal", **more)


def says(content: str = "said", **decisions: Any) -> AgentReplied:
    return AgentReplied(text=json.dumps({"content": content, "decisions": decisions}))


def turned(to: str, via: int, **decisions: Any) -> TurnFinished:
    """The end of the first turn, by agent_a, in which nothing was written."""
    done = digest(decisions, []) if decisions else NOTHING
    return TurnFinished(reply=3, to=to, via=via, agent="agent_a", digest=done)


LOOP = graph(
    state("a", ("b", "go"), ("a", "NOT go")),
    state("b", (END, "done AND score >= 8"), ("a", "NOT done OR score < 8")),
)


@pytest.mark.req("S1-20", "S1-23")
def test_begins_with_the_start_state() -> None:
    story = given(STYLE, LOOP)
    assert story.run is not None
    assert [o.command for o in story.run.open.values()] == [AskAgent(agent="agent_a", kind="coder", context=(1,))]


@pytest.mark.req("S1-31", "S1-67", "S1-85")
def test_takes_the_first_transition_that_holds() -> None:
    given(STYLE, LOOP).when(says(go=True)).then(turned("b", 0, go=True), Asked)
    given(STYLE, LOOP).when(says(go=False)).then(turned("a", 1, go=False), Asked)
    overlapping = graph(state("a", ("b", "x"), (END, "x")), state("b"))
    given(STYLE, overlapping).when(says(x=True)).then_asks(AskAgent)


@pytest.mark.req("S1-32")
def test_end_completes_the_run() -> None:
    story = given(STYLE, LOOP, says(go=True))
    story.when(says(done=True, score=9)).then(TurnFinished, Ended).then_ends("completed", "done AND score >= 8")


@pytest.mark.req("S1-28")
def test_no_transitions_lead_to_the_end() -> None:
    given(STYLE, graph(state("a"))).when(says()).then_ends("completed", "has no transitions")


@pytest.mark.req("S1-68")
def test_none_that_holds_ends_the_run_and_says_so() -> None:
    told = given(STYLE, graph(state("a", (END, "x")))).when(says(y=1))
    told.then(turned("", -1, y=1), Warned, Ended).then_ends("completed", "the only transition of a does not hold")


SCORES = graph(state("a", (END, "score >= 8"), ("b", "score < 8")), state("b"))


@pytest.mark.parametrize(
    ("decisions", "problem"),
    [
        ({"score": "9"}, 'score is the text "9", not a number; the transitions compare it with 8'),
        ({"score": True}, "score is true, not a number"),
        ({"score": None}, "score is null, not a number"),
        ({"score": [9]}, "score is a list, not a number"),
        ({"score": "9" * 500}, f'score is the text "{"9" * 60}…", not a number'),
        ({"Score": 9}, 'score is missing, but "Score" is there (did you mean "score"?)'),
        ({}, "score is missing; the transitions compare it with 8"),
    ],
)
@pytest.mark.req("S1-68", "S1-71")
def test_asks_again_when_a_compared_decision_is_missing_or_wrongly_typed(decisions: Any, problem: str) -> None:
    story = given(STYLE, SCORES)
    told = story.when(says(**decisions)).then(Corrected, Asked)
    (ask,) = told.commands
    assert isinstance(ask, AskAgent)
    assert problem in STYLE.render(told.run.open[told.run.length].state, ask).messages[-1].text
    told = story.when(says(**decisions)).then(TurnFinished, Warned, Ended)
    assert problem in told.decided[1].text  # type: ignore[attr-defined]
    told.then_ends("completed", "none of the 2 transitions of a holds")


JUDGED = graph(state("a", (END, "approved"), ("a", "NOT approved")))


@pytest.mark.parametrize("said", ["false", "no", "0", "不通过", "", 0, -1, 1, None, [False], {}])
@pytest.mark.parametrize("way", ["approved", "approved AND ok", "ok AND NOT approved", "refused OR approved"])
@pytest.mark.req("S1-57", "S1-82")
def test_what_is_neither_true_nor_false_approves_nothing(said: Any, way: str) -> None:
    leave = (ExitCondition(condition=way, action="force_end"),)
    for ways in (graph(state("a", (END, way))), graph(state("a", ("a", "")), exit_conditions=leave)):
        story = given(STYLE, ways)
        told = story.when(says(approved=said, ok=True, refused=False)).then(Corrected, Asked)
        assert "approved must be true or false, and is " in told.decided[0].problem  # type: ignore[attr-defined]
        told = story.when(says(approved=said, ok=True, refused=False))
        told.then_ends("failed", "agent 'agent_a' broke the protocol: approved must be true or false")


def test_an_agent_that_puts_its_answer_right_goes_on() -> None:
    given(STYLE, JUDGED, says(approved="false")).when(says(approved=False)).then(TurnFinished, Asked)
    recorded = msgspec.structs.replace(says(approved="false"), recorded=True)
    given(STYLE, JUDGED).when(recorded).then_ends("failed", 'is the text "false"')


def test_a_text_where_no_condition_needs_true_or_false_is_as_good_as_before() -> None:
    ways = graph(state("a", (END, 'kind == "a"'), (END, "approved")))
    given(STYLE, ways).when(says(kind="a", approved="n/a")).then(TurnFinished, Ended).then_ends("completed")
    counted = graph(state("a", (END, "turns AND ok")))
    given(STYLE, counted).when(says(ok=True, score=3)).then_ends("completed")


QUOTED = '{"content": "x", "decisions": {"approved": true}}'


@pytest.mark.parametrize(
    "text",
    [
        f"An approval would look like this:\n```json\n{QUOTED}\n```\nbut I refuse: the file is missing.",
        f'{{"result": {QUOTED}}}',
        f"[{QUOTED}]",
        f'{{"decisions": {{"approved": false}}}}\n{QUOTED}',
        f'```json\n{{"decisions": {{"approved": false}}}}\n```\n\n```json\n{QUOTED}\n```',
        '{"decisions": {"approved": false, "approved": true}}',
        '{"decisions": {"approved": false, // not yet\n "approved": true,}}',
        '{"decisions": {"approved": false, "appro\\u0076ed": true}}',
        '{"decisions": {"approved": false}, "decisions": {"approved": true}}',
        '{"decisions": {"approved": false}}' + QUOTED * 20,
        f"It is bad. I must not say:\n> {QUOTED}",
        f"I cannot say {QUOTED}",
    ],
)
@pytest.mark.req("S1-48", "S1-56")
def test_an_approval_that_is_not_the_replys_last_word_is_none(text: str) -> None:
    given(STYLE, JUDGED).when(AgentReplied(text=text)).then(Corrected, Asked)
    given(STYLE, JUDGED, AgentReplied(text=text)).when(AgentReplied(text=text)).then_ends(
        "failed", "broke the protocol"
    )


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{QUOTED}\n```\n\n",
        f"It is good.\n{QUOTED}\n\nThank you!",
        f"{QUOTED}\n<think>done</think>",
        f'a/b.json\n```json\n{{"decisions": {{"approved": false}}}}\n```\n{QUOTED}',
        f"a/b.json\n```json\n{QUOTED}\n```\n{QUOTED}",
        f'The form is {{"content": "what you did", "decisions": {{}}}}, so:\n{QUOTED}',
        '{"content": "approved: {\\"decisions\\": 1}", "decisions": {"approved": true, "why": "\\"approved\\""}}',
    ],
)
@pytest.mark.req("S1-48")
def test_an_approval_with_nothing_but_form_around_it_counts(text: str) -> None:
    assert final_decisions(text)[1]["approved"] is True


@pytest.mark.parametrize(
    "text",
    [
        f"a/example.json\n```json\n{QUOTED}\n```",
        f"a/b.md\n```\nhello\n```\na/example.json\n```json\n{QUOTED}\n```",
        f"```json a/example.json\n{QUOTED}\n```\nThank you!",
    ],
)
@pytest.mark.req("S1-48")
def test_an_object_in_a_file_that_the_reply_delivers_decides_nothing(text: str) -> None:
    with pytest.raises(NoReply, match="is in a file that the reply delivers"):
        final_decisions(text)


def test_a_run_warns_once_of_another_model_and_of_a_filter() -> None:
    odd = msgspec.structs.replace(says(go=False), model="openai:m", says="n", filtered=True)
    first = given(STYLE, LOOP).when(odd)
    assert [event.text for event in first.decided if isinstance(event, Warned)] == [
        "The server of 'openai:m' says that it left something out of a reply (content_filter).",
        "The server of 'openai:m' says that another model replied: 'n'.",
    ]
    assert not [event for event in given(STYLE, LOOP, odd).when(odd).decided if isinstance(event, Warned)]


def test_an_agent_that_corrects_its_decisions_goes_on() -> None:
    given(STYLE, SCORES, says(score="7")).when(says(score=7)).then(TurnFinished, Asked)


def test_a_recording_is_not_asked_again_for_its_decisions() -> None:
    recorded = msgspec.structs.replace(says(score="9"), recorded=True)
    given(STYLE, SCORES).when(recorded).then(TurnFinished, Warned, Ended).then_ends("completed")


def test_reasks_also_bound_the_questions_about_decisions() -> None:
    never = msgspec.structs.replace(SCORES, reasks=0)
    given(STYLE, never).when(says()).then(TurnFinished, Warned, Ended)
    story = given(STYLE, SCORES, AgentReplied(text="no JSON"))
    story.when(says()).then(TurnFinished, Warned, Ended), "the protocol error was the one question"


@pytest.mark.parametrize(
    ("conditions", "decisions", "seen"),
    [
        (("x",), {"x": False}, "x is false"),
        (("x",), {"y": 1}, "x is missing"),
        (("done AND score >= 8",), {"done": False}, "done is false; score is missing"),
        (('verdict == "pass"',), {"verdict": "Pass"}, 'verdict is the text "Pass" (did you mean "pass"?)'),
        (('turns == "1"',), {}, "turns is the number 1"),
    ],
)
def test_values_that_asking_again_would_not_mend_end_the_run_with_a_warning(
    conditions: tuple[str, ...], decisions: dict[str, Any], seen: str
) -> None:
    ways = graph(state("a", *((END, each) for each in conditions)))
    told = given(STYLE, ways).when(says(**decisions)).then(TurnFinished, Warned, Ended)
    assert seen in told.decided[1].text  # type: ignore[attr-defined]


def test_warns_of_a_wrongly_typed_decision_where_another_transition_holds() -> None:
    ways = graph(state("a", (END, "score >= 8"), (END, "")))
    told = given(STYLE, ways).when(says(score="9")).then(TurnFinished, Warned, Ended)
    assert told.decided[1].text == (  # type: ignore[attr-defined]
        'score is the text "9", not a number; the transitions compare it with 8; the comparison is false'
    )
    given(STYLE, ways).when(says(score=9)).then(TurnFinished, Ended)


def test_a_misspelt_decision_is_asked_for_again() -> None:
    told = given(STYLE, graph(state("a", (END, "is_done")))).when(says(isDone=True)).then(Corrected, Asked)
    assert '(did you mean "is_done"?)' in told.decided[0].problem  # type: ignore[attr-defined]


def test_a_state_without_transitions_ends_without_a_warning() -> None:
    given(STYLE, graph(state("a"))).when(says()).then(TurnFinished, Ended)


def test_a_wrong_type_takes_the_transition_that_holds() -> None:
    covered = graph(state("a", (END, "score >= 8"), ("b", "always")), state("b"))
    given(STYLE, covered).when(says(score="9")).then(turned("b", 1, score="9"), Warned, Asked)


@pytest.mark.parametrize("name", ["turn_count_a", "turns", "turn_count"])
def test_a_decision_cannot_defeat_a_condition_on_the_engines_own_name(name: str) -> None:
    ending = graph(state("a", (END, f"{name} >= 2"), ("a", "always")))
    story, shadowing = given(STYLE, ending), AgentReplied(text=f'{{"decisions": {{"{name}": 0}}}}')
    told = story.when(shadowing).then(TurnFinished, Warned, Asked)
    assert repr(name) in told.decided[1].text  # type: ignore[attr-defined]
    story.when(shadowing).then_ends("completed", f"{name} >= 2")


def test_decisions_do_not_hide_an_error_or_the_turn_limit_from_exit_conditions() -> None:
    saves = (ExitCondition(condition="error_occurred", action="save_and_end"),)
    story = given(STYLE, graph(state("a", ("a", "always")), exit_conditions=saves), says(error_occurred=False))
    story.when(Failed(reason="no key")).then_ends("failed", "error_occurred → save_and_end")
    exits = (ExitCondition(condition="max_turns_exceeded", action="force_end"),)
    going = graph(state("a", ("a", "always")), exit_conditions=exits)
    given(STYLE, going).when(says(max_turns_exceeded=True)).then_asks(AskAgent)


def test_a_decision_named_like_the_turns_of_no_state_is_a_decision() -> None:
    given(STYLE, graph(state("a", (END, "turn_count_x > 3")))).when(says(turn_count_x=9)).then(TurnFinished, Ended)


@pytest.mark.req("S1-71")
def test_a_missing_decision_is_false_and_warned_of_by_name() -> None:
    (warning,) = [e for e in given(STYLE, LOOP).when(says()).decided if isinstance(e, Warned)]
    assert "'go'" in warning.text


@pytest.mark.req("S1-8", "S1-75", "S1-80")
def test_exactly_max_turns_turns_are_taken() -> None:
    limited = graph(state("a", ("a", "NOT done"), (END, "done")), max_turns=3)
    story = given(STYLE, limited, says(done=False), says(done=False))
    told = story.when(says(done=False)).then_ends("limit", "3 turns")
    assert any(isinstance(e, GuardTripped) and e.guard == "max_turns" for e in told.decided)
    assert told.run.spent.turns == 3


def test_after_the_last_turn_an_end_that_holds_still_completes() -> None:
    limited = graph(
        state("a", ("a", "NOT done"), (END, "done")),
        max_turns=2,
        exit_conditions=(ExitCondition(condition="max_turns_exceeded", action="force_end"),),
    )
    given(STYLE, limited, says(done=False)).when(says(done=True)).then_ends("completed")


@pytest.mark.req("S1-69")
def test_max_turns_exceeded_may_stand_in_a_transition() -> None:
    limited = graph(state("a", (END, "ok AND max_turns_exceeded"), ("a", "ok")), max_turns=2)
    given(STYLE, limited, says(ok=True)).when(says(ok=True)).then_ends("completed")


@pytest.mark.req("S1-70")
def test_turns_are_known_in_conditions() -> None:
    counting = graph(state("a", ("a", "turns < 3"), (END, "turn_count_a == 3")))
    given(STYLE, counting, says(), says()).when(says()).then_ends("completed", "turn_count_a == 3")


@pytest.mark.req("S1-73", "S1-79")
def test_an_exit_condition_comes_before_transitions() -> None:
    leaving = graph(state("a", (END, "ok")), exit_conditions=(ExitCondition(condition="ok", action="force_end"),))
    given(STYLE, leaving).when(says(ok=True)).then_ends("stopped", "exit condition 'ok'")


@pytest.mark.req("S1-49")
def test_a_reply_without_decisions_is_corrected_once_and_then_fails() -> None:
    story = given(STYLE, LOOP)
    told = story.when(AgentReplied(text="All done!")).then(Corrected, Asked)
    (ask,) = told.commands
    assert isinstance(ask, AskAgent) and ask.continues == 2
    prompt = STYLE.render(told.run.open[told.run.length].state, ask)
    assert [m.role for m in prompt.messages] == ["system", "user", "assistant", "user"]
    assert "there is no JSON object" in prompt.messages[-1].text
    story.when(AgentReplied(text="Really.")).then_ends("failed", "broke the protocol")


def test_a_corrected_reply_goes_on_as_if_nothing_had_happened() -> None:
    told = given(STYLE, LOOP, AgentReplied(text="oops")).when(says(go=True)).then_asks(AskAgent)
    assert told.run.state.turns == 2, "a correction is no turn of its own"


@pytest.mark.req("S1-76", "S1-78")
def test_a_failed_agent_fails_the_run_through_error_occurred() -> None:
    saving = graph(state("a"), exit_conditions=(ExitCondition(condition="error_occurred", action="save_and_end"),))
    given(STYLE, saving).when(Failed(reason="no key")).then_ends("failed", "no key (error_occurred → save_and_end)")


@pytest.mark.req("S1-34", "S1-36", "S1-37", "S1-38", "S1-39")
def test_the_prompt_is_rendered_from_the_state_it_was_asked_in() -> None:
    text = "{{initial_message}}|{{last_agent_name}}|{{last_agent_decisions}}|{{turn_count}}|{{COLLABORATION_GUIDE}}"
    guided = graph(state("a", ("a", "x"), prompt=text), guide="GUIDE")
    story = given(STYLE, guided)

    def prompt() -> str:
        assert story.run is not None
        (opened,) = story.run.open.values()
        assert isinstance(opened.command, AskAgent)
        return STYLE.render(opened.state, opened.command).text

    assert prompt() == "the goal||{}|1|GUIDE"
    story.tell(says(x=True))
    assert prompt() == 'the goal|agent_a|{"x":true}|2|GUIDE'


def test_input_takes_the_place_of_the_initial_message() -> None:
    story = given(STYLE, graph(state("a", prompt="{{initial_message}}")), input="another goal")
    assert story.run is not None
    (opened,) = story.run.open.values()
    assert isinstance(opened.command, AskAgent)
    assert STYLE.render(opened.state, opened.command).text == "another goal"


def test_tool_calls_are_commands_of_their_own_and_the_turn_goes_on() -> None:
    calls = (ToolCall(id="1", tool="add", arguments={"a": 1}), ToolCall(id="2", tool="add", arguments={"a": 2}))
    story = given(STYLE, LOOP)
    told = story.when(AgentReplied(text="let me see", calls=calls))
    told.then_asks(CallTool(tool="add", agent="agent_a", source=(3, 0)))
    told = story.when(ToolReturned(value=7)).then_asks(CallTool(tool="add", agent="agent_a", source=(3, 1)))
    opened = told.run.open[told.run.length]
    assert isinstance(opened.command, CallTool)
    assert STYLE.arguments(opened.state, opened.command) == {"a": 2}
    told = story.when(Failed(reason="too big")).then_asks(AskAgent)
    (ask,) = told.commands
    assert isinstance(ask, AskAgent)
    messages = STYLE.render(told.run.open[told.run.length].state, ask).messages
    assert [(m.role, m.text) for m in messages[2:]] == [
        ("assistant", "let me see"),
        ("tool", "7"),
        ("tool", "Error: too big"),
    ]
    story.when(says(go=True)).then_asks(AskAgent)
    assert story.run is not None and story.run.spent.turns == 2


def test_every_variable_that_a_prompt_may_use_has_a_value() -> None:
    assert VALUES.keys() == VARIABLES


def test_what_was_worked_out_is_no_part_of_a_definition() -> None:
    used, fresh = (graph(state("a", (END, "go"))) for _ in range(2))
    given(STYLE, used).when(says(go=True)).then_ends("completed")
    assert used == fresh and msgspec.json.encode(used) == msgspec.json.encode(fresh)


def test_a_run_in_the_middle_of_tool_calls_has_a_fingerprint() -> None:
    calls = tuple(ToolCall(id=name, tool="add", arguments={"a": 1}) for name in "xy")
    one, two = given(STYLE, LOOP, AgentReplied(calls=calls)), given(STYLE, LOOP, AgentReplied(calls=calls))
    assert one.run is not None and two.run is not None and len(one.run.open) == 1
    assert fingerprint(one.run) == fingerprint(two.run)
    two.tell(ToolReturned(value=""))
    assert fingerprint(one.run) != fingerprint(two.run)


def test_the_kernels_turn_budget_stops_a_graph() -> None:
    story = given(STYLE, LOOP, limits=Limits(turns=1))
    told = story.when(says(go=True)).then_ends("limit", "turns")
    assert any(isinstance(e, GuardTripped) and e.guard == "budget.turns" for e in told.decided)


@pytest.mark.req("S1-54", "S1-55")
def test_the_reply_schema_follows_from_the_conditions() -> None:
    deciding = state("a", ("b", "approved AND score >= 8"), (END, 'mood == "good" OR max_turns_exceeded OR NOT late'))
    decisions = deciding.brief.reply_schema["properties"]["decisions"]["properties"]
    assert {name: schema["type"] for name, schema in decisions.items()} == {
        "approved": "boolean",
        "score": "number",
        "mood": "string",
        "late": "boolean",
    }
    assert deciding.brief.reply_schema["required"] == ["content", "decisions"]


def test_the_reply_schema_has_what_the_prompts_example_shows_too() -> None:
    prompt = """Decide.
{
  "decisions": {
    "approved": true,  // boolean: {{initial_message}}
    "score": 7,        // 1 to 10
    "why": "…",
    "list": []
  }
}
"""
    deciding = state("a", (END, "approved AND late"), prompt=prompt)
    decisions = deciding.brief.reply_schema["properties"]["decisions"]["properties"]
    assert {name: schema["type"] for name, schema in decisions.items()} == {
        "approved": "boolean",
        "late": "boolean",
        "score": "number",
        "why": "string",
    }


def test_explains_every_condition_with_the_values_it_saw() -> None:
    story = given(STYLE, LOOP, says(go=True))
    before = story.run
    assert before is not None
    answered, turned, *_ = story.when(says(done=True, score=3)).events
    after_answer = STYLE.evolve(before.state, before.length + 1, answered)
    first, second = STYLE.view.explain(after_answer, turned).reasons
    assert (first.text, first.holds, first.taken) == ("to END if done AND score >= 8", False, False)
    assert first.tree == ("AND = false", "  done = true", "  score [3] >= 8 = false")
    assert (second.text, second.holds, second.taken) == ("to a if NOT done OR score < 8", True, True)


FILES = """\
collab/a.md
```markdown
# One
```

collab/b.md
```
<<<<<<< SEARCH
old
=======
new
>>>>>>> REPLACE
```
"""


@pytest.mark.req("S1-45", "S1-46", "S1-51")
def test_files_in_the_text_are_written_before_the_json_is_read() -> None:
    story = given(STYLE, LOOP)
    wanted = [
        ("write_file", {"path": "collab/a.md", "content": "# One\n"}),
        ("edit_file", {"path": "collab/b.md", "search": "old\n", "replace": "new\n"}),
    ]
    fact: AgentReplied | ToolReturned = AgentReplied(text=FILES + says(go=True).text)
    for index, (tool, arguments) in enumerate(wanted):
        told = story.when(fact).then_asks(CallTool(tool=tool, agent="agent_a", source=(3, index)))
        opened = told.run.open[told.run.length]
        assert isinstance(opened.command, CallTool)
        assert STYLE.arguments(opened.state, opened.command) == arguments
        fact = ToolReturned(value="written")
    story.when(fact).then_asks(AskAgent)


@pytest.mark.req("S1-16", "S1-17")
def test_an_agent_that_asks_writes_nothing() -> None:
    asking = graph(state("a", (END, "ok")))
    asking = msgspec.structs.replace(asking, agents=(Agent(name="agent_a", type="ask"),))
    told = given(STYLE, asking).when(AgentReplied(text=FILES + says(ok=True).text)).then_ends("completed")
    assert [e.index for e in told.decided if isinstance(e, Denied)] == [0, 1]
    assert not told.commands
    calls = (ToolCall(id="1", tool="write_file", arguments={"path": "x", "content": "y"}),)
    told = given(STYLE, asking).when(AgentReplied(calls=calls)).then(Denied, Asked)
    (ask,) = told.commands
    assert isinstance(ask, AskAgent)
    last = STYLE.render(told.run.open[told.run.length].state, ask).messages[-1]
    assert "may not call 'write_file'" in last.text


@pytest.mark.req("S1-16", "S1-17")
def test_an_agent_that_asks_writes_nothing_even_with_writing_tools_listed() -> None:
    tools = ("write_file", "edit_file", "read_file", "deploy")
    asking = msgspec.structs.replace(graph(state("a")), agents=(Agent(name="agent_a", type="ask", tools=tools),))
    story = given(STYLE, asking)
    assert story.run is not None
    (opened,) = story.run.open.values()
    assert isinstance(opened.command, AskAgent)
    assert STYLE.render(opened.state, opened.command).tools == ("read_file", "deploy")
    calls = (ToolCall(id="1", tool="edit_file", arguments={}),)
    given(STYLE, asking).when(AgentReplied(calls=calls)).then(Denied, Asked)
    told = given(STYLE, asking).when(AgentReplied(text=FILES + says().text)).then_ends("completed")
    assert not told.commands


@pytest.mark.req("S1-13", "S1-14", "S1-15", "S1-16", "S1-17")
def test_the_types_of_agents_really_differ() -> None:
    seen = {}
    for kind in ("coder", "architect", "ask"):
        typed = msgspec.structs.replace(graph(state("a")), agents=(Agent(name="agent_a", type=kind),))
        story = given(STYLE, typed)
        assert story.run is not None
        (opened,) = story.run.open.values()
        assert isinstance(opened.command, AskAgent)
        prompt = STYLE.render(opened.state, opened.command)
        assert opened.command.kind == kind
        seen[kind] = (opened.command.model, "write_file" in prompt.tools, prompt.messages[0].text)
    assert {kind: (model, writes) for kind, (model, writes, _) in seen.items()} == {
        "coder": ("", True),
        "architect": ("strong", True),
        "ask": ("", False),
    }
    assert len({text for _, _, text in seen.values()}) == 3


@pytest.mark.req("S1-77", "S1-78")
def test_a_saved_run_goes_on_from_exactly_where_it_ended() -> None:
    saving = graph(
        state("a", ("b", "go")),
        state("b", ("a", "NOT done"), (END, "done")),
        max_turns=2,
        exit_conditions=(
            ExitCondition(condition="max_turns_exceeded", action="save_and_end"),
            ExitCondition(condition="error_occurred", action="save_and_end"),
        ),
    )
    story = given(STYLE, saving, says(go=True))
    story.when(says(done=False)).then_ends("limit", "can be resumed")
    told = story.when(ResumeRequested()).then_asks(AskAgent)
    assert told.run.ended is None
    assert told.run.state.here.name == "a"
    story.when(Failed(reason="no key")).then_ends("failed", "Saved")
    told = story.when(ResumeRequested()).then_asks(AskAgent)
    assert told.run.state.here.name == "a"
    story.when(says(go=True)).then_asks(AskAgent)
    story.when(says(done=True)).then_ends("completed")
    story.when(ResumeRequested()).then_refused(RunHasEnded)


def test_a_saved_run_that_was_forked_to_a_graph_without_its_state_cannot_be_resumed() -> None:
    saves = ExitCondition(condition="error_occurred", action="save_and_end")
    story = given(STYLE, graph(state("a"), exit_conditions=(saves,)), Failed(reason="no key"))
    story.contents.definitions["other"] = graph(state("b"))
    story.when(Forked(run="story", at=3, definition="other")).then_ends("failed", "no state 'a'")
    story.when(ResumeRequested()).then_refused(RunHasEnded)


def test_a_turn_that_a_fork_takes_anew_counts_once() -> None:
    story = given(STYLE, LOOP, says(go=False))
    told = story.when(Forked(run="story", at=5))
    told.then(
        Withdrawn(number=5, because="asked again by the fork", unmade=True),
        TurnRestarted(number=5),
        Asked,
    )
    assert (told.run.spent.turns, told.run.spent.calls) == (2, 2)
    assert (told.run.state.turns, told.run.state.counts) == (2, {"a": 2})


def test_a_turn_in_the_middle_of_tool_calls_is_taken_anew_but_its_call_was_made() -> None:
    calls = tuple(ToolCall(id=str(n), tool="add", arguments={}) for n in range(2))
    told = given(STYLE, LOOP, AgentReplied(calls=calls)).when(Forked(run="story", at=5))
    assert [type(command) for command in told.commands] == [AskAgent]
    assert (told.run.spent.turns, told.run.spent.calls) == (1, 2)
    assert (told.run.state.turns, told.run.state.counts) == (1, {"a": 1})


@pytest.mark.parametrize("then", ["ask", "end"])
def test_a_turn_that_a_guard_broke_off_counts_once_when_the_run_goes_on(then: str) -> None:
    hurried = msgspec.structs.replace(LOOP, guards={"then": then})
    story = given(STYLE, hurried, says(go=True), limits=Limits(seconds=9.0))
    story.when(TimerFired(), after=9.0)
    told = story.when(ResumeRequested(raises={"seconds": 9.0}))
    assert (told.run.spent.turns, told.run.spent.calls) == (2, 3), "the call was made, the turn was not finished"
    assert (told.run.state.turns, told.run.state.counts) == (2, {"a": 1, "b": 1})
    story.when(says(done=True, score=9)).then_ends("completed")


def test_a_run_that_was_not_saved_cannot_be_resumed() -> None:
    given(STYLE, graph(state("a")), says()).when(ResumeRequested()).then_refused(RunHasEnded)


def test_strict_decisions_make_a_missing_one_an_error() -> None:
    strict = msgspec.structs.replace(LOOP, strict_decisions=True)
    given(STYLE, strict).when(says()).then_ends("failed", "lack 'go'")


def test_reasks_can_be_switched_off_and_raised() -> None:
    never = msgspec.structs.replace(LOOP, reasks=0)
    given(STYLE, never).when(AgentReplied(text="hm")).then_ends("failed", "broke the protocol")
    twice = msgspec.structs.replace(LOOP, reasks=2)
    story = given(STYLE, twice, AgentReplied(text="hm"))
    story.when(AgentReplied(text="hm")).then_asks(AskAgent)
    story.when(AgentReplied(text="hm")).then_ends("failed")


def test_a_debate_that_a_guard_stopped_is_told_how_to_switch_the_guard_off() -> None:
    debate = graph(state("a", ("b", "always")), state("b", ("a", "always")), guards={"patience": 2})
    story = given(STYLE, debate, *[says(f"argument {n}") for n in range(3)])
    story.when(says("argument 4")).then_ends("stopped", "`patience: 0`")
    alone = graph(state("a", ("a", "always")), guards={"patience": 2})
    given(STYLE, alone, says("one")).when(says("two")).then_ends("stopped", "`patience: 0`")


def told_to(story: Given) -> str:
    """What the agent whose turn it is was told."""
    assert story.run is not None
    (opened,) = story.run.open.values()
    assert isinstance(opened.command, AskAgent)
    return STYLE.render(opened.state, opened.command).text


VALUED = graph(
    state("a", ("a", "NOT done"), (END, "done"), prompt="{{tone}} to {{customer}}, about {{initial_message}}"),
    values={"tone": "friendly", "customer": None},
)


def begun(values: Any, definition: Graph = VALUED) -> Given:
    return given(STYLE, definition, arguments={"values": values})


def test_values_take_their_places_in_prompts_in_one_pass() -> None:
    assert told_to(begun({"customer": "Ms Ito"})) == "friendly to Ms Ito, about the goal"
    assert told_to(begun({"customer": "{{tone}}", "tone": "{% if x %}"})) == "{% if x %} to {{tone}}, about the goal"
    assert told_to(begun({"customer": "", "tone": "x"})) == "x to , about the goal"


@pytest.mark.parametrize("values", [None, 3, {"customer": 5}, {"customer": None}])
def test_refuses_values_that_are_not_texts(values: Any) -> None:
    with pytest.raises(UsageError, match="values"):
        begun(values)


@pytest.mark.parametrize("values", [{}, {"tone": "x"}])
def test_a_run_without_a_value_that_it_requires_does_not_start(values: Any) -> None:
    story = begun(values)
    assert story.run is not None and story.run.ended is not None and not story.run.spent.calls
    assert (story.run.ended.outcome, "customer" in story.run.ended.because) == ("failed", True)


def test_a_run_with_a_value_that_is_not_declared_does_not_start() -> None:
    story = begun({"customer": "Ms Ito", "tune": "x"})
    assert story.run is not None and story.run.ended is not None and not story.run.spent.calls
    assert "no value 'tune'; it declares: tone, customer" in story.run.ended.because


def test_values_survive_a_fork_and_new_defaults_hold_for_what_was_not_set() -> None:
    story = begun({"customer": "Ms Ito"})
    story.contents.definitions["other"] = msgspec.structs.replace(
        VALUED, values={"tone": "formal", "customer": "nobody"}
    )
    story.when(Forked(run="story", at=2, definition="other")).then_asks(AskAgent)
    assert told_to(story) == "formal to Ms Ito, about the goal"
    story.contents.definitions["more"] = msgspec.structs.replace(VALUED, values={**VALUED.values, "sender": None})
    story.when(Forked(run="story", at=2, definition="more")).then_ends("failed", "sender")


SMALL = RunSettings(small_model=True)


def instructed(settings: RunSettings, language: str = "en") -> Given:
    """A run with the built-in guide, started with these settings."""
    guided = graph(state("a", ("a", "always"), prompt="{{COLLABORATION_GUIDE}} Go."), language=language)
    return given(STYLE, guided, settings=settings)


def test_a_small_model_gets_a_short_guide_and_short_instructions() -> None:
    story = instructed(SMALL)
    assert told_to(story) == "Answer in JSON. Go."
    assert story.run is not None
    (opened,) = story.run.open.values()
    assert isinstance(opened.command, AskAgent)
    assert "SEARCH" not in STYLE.render(opened.state, opened.command).messages[0].text
    assert told_to(instructed(SMALL, language="zh")) == "用 JSON 回答。 Go."


def test_the_guide_follows_the_model_that_a_run_is_told_to_use() -> None:
    story = instructed(SMALL)
    story.tell(SettingsChanged(settings=RunSettings(model_for_all="openai:large")))
    assert told_to(story) == "Answer in JSON. Go.", "a call that is open keeps its prompt"
    story.tell(says())
    assert "How we work together" in told_to(story)
    story.tell(Forked(run="story", at=2, settings=SMALL))
    assert told_to(story) == "Answer in JSON. Go."


@pytest.mark.req("S1-37")
def test_the_guide_speaks_the_language_of_the_workflow() -> None:
    for language, word in (("en", "How we work together"), ("zh", "我们怎样一起工作")):
        guided = msgspec.structs.replace(graph(state("a", prompt="{{COLLABORATION_GUIDE}}")), language=language)
        story = given(STYLE, guided)
        assert story.run is not None
        (opened,) = story.run.open.values()
        assert isinstance(opened.command, AskAgent)
        assert word in STYLE.render(opened.state, opened.command).text


@pytest.mark.req("S1-56")
def test_words_choose_no_way_only_decisions_do() -> None:
    text = "Approved! Go on, we are done.\n" + says("go, go, go", go=False).text
    given(STYLE, LOOP).when(AgentReplied(text=text)).then(turned("a", 1, go=False), Asked)
