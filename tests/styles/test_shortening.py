"""What of a turn goes into its prompts: results as JSON and in bounds, older texts shortened near the window."""

import json
from typing import Any

import pytest

from ripstop.kernel.effects import AgentReplied, AskAgent, Failed, ToolCall, ToolReturned
from ripstop.kernel.events import Asked
from ripstop.kernel.folding import replay
from ripstop.kernel.prompt import Prompt, estimate, seal
from ripstop.styles.graph.definition import END, Agent, Graph, State, Transition
from ripstop.styles.graph.style import GraphStyle
from ripstop.styles.shortening import ALL, GIVEN, LONGEST_RESULT, NEAR, OLDER, cut
from ripstop.styles.turn import Shortened
from ripstop.testing import Given, given
from tests.styles.loops import ring, says

BIG = "x" * 30_000


def reads(path: str = "a.md", window: int = 0, **more: Any) -> AgentReplied:
    call = ToolCall(id="1", tool="read_file", arguments={"path": path, **more})
    return AgentReplied(text="Let me see.", calls=(call,), window=window)


def story_of(*results: Any, window: int = 0) -> Given:
    story = ring(1)()
    for result in results:
        story.tell(reads(window=window))
        story.tell(result if isinstance(result, Failed) else ToolReturned(value=result))
    return story


def asked(story: Given) -> tuple[AskAgent, Prompt]:
    assert story.run is not None
    (opened,) = story.run.open.values()
    assert isinstance(opened.command, AskAgent)
    return opened.command, story.style.render(opened.state, opened.command)


def prompt(story: Given) -> Prompt:
    return asked(story)[1]


def results(story: Given) -> list[str]:
    return [message.text for message in prompt(story).messages if message.role == "tool"]


def shortenings(story: Given) -> list[Shortened]:
    return [record.event for record in story.records if isinstance(record.event, Shortened)]


def test_a_result_is_told_as_json_and_a_text_as_it_is() -> None:
    value = {"path": "ä.md", "none": None, "is": True, "some": [1, 2.5, "three"]}
    story = story_of(value, "None", ["a"])
    first, text, listed = results(story)
    assert json.loads(first) == value and "ä" in first
    assert (text, listed) == ("None", '["a"]')


def test_a_call_of_an_older_version_still_shows_what_it_sent() -> None:
    value = {"path": "a.md", "none": None}
    story = story_of(value, "y" * 50_000)
    command, _ = asked(story)
    old = AskAgent(agent=command.agent, continues=command.continues, context=command.context)
    assert story.run is not None
    shown = story.style.render(story.run.state, old)
    assert [one.text for one in shown.messages if one.role == "tool"] == [repr(value), "y" * 50_000]


@pytest.mark.parametrize("value", ["z" * 100_000, {"output": "z" * 100_000}, ["z" * 10] * 10_000])
def test_a_long_result_is_bounded_and_says_what_is_left_out(value: Any) -> None:
    (told,) = results(story_of(value))
    assert LONGEST_RESULT < len(told) < LONGEST_RESULT + 100
    assert "characters are left out here" in told


def test_a_failure_is_bounded_as_well() -> None:
    (told,) = results(story_of(Failed(reason="no " * 50_000, fault="tool")))
    assert told.startswith("Error: no no") and len(told) < LONGEST_RESULT + 100


def test_nothing_is_shortened_far_from_the_window_or_without_one() -> None:
    for window in (0, 1_000_000):
        story = story_of(BIG, BIG, BIG, window=window)
        assert shortenings(story) == [] and results(story) == [BIG] * 3


def test_older_results_are_shortened_when_the_window_is_near() -> None:
    window = 40_000
    story = story_of(BIG, BIG, BIG, window=window)
    (event,) = shortenings(story)
    assert event.tokens > window * NEAR and f"{window:,}" in event.because
    *older, last = results(story)
    assert last == BIG, "what was asked for last is whole"
    assert all(len(one) < OLDER[0] + 100 and "left out" in one for one in older)
    assert estimate(prompt(story)) == pytest.approx(event.left, abs=2)
    assert event.left <= window / 2, "so it is not done with every call"


def test_shortening_is_on_record_so_every_prompt_can_be_shown_again() -> None:
    story = ring(1)()
    sent = []
    for _ in range(12):
        story.tell(reads(window=40_000))
        story.tell(ToolReturned(value=BIG))
        sent.append(seal(prompt(story)))
    assert 1 < len(shortenings(story)) < 6
    shown = []
    for record in story.records:
        if isinstance(record.event, Asked) and isinstance(record.event.command, AskAgent):
            before = replay(story.style, story.contents, story.run_id, story.records[: record.number])
            assert before is not None
            shown.append(seal(story.style.render(before.open[record.number].state, record.event.command)))
    assert shown[1:] == sent


def test_prompts_of_a_long_turn_stay_within_the_window() -> None:
    story, window = ring(1, guards={"turn_calls": 0})(), 40_000
    for number in range(60):
        story.tell(reads(window=window, content="w" * 3000))
        story.tell(ToolReturned(value=f"{number} {BIG}"))
        assert estimate(prompt(story)) <= window


def test_arguments_of_older_calls_and_long_replies_are_shortened_too() -> None:
    story = ring(1)()
    for _ in range(4):
        call = ToolCall(id="1", tool="write_file", arguments={"path": "a.md", "content": BIG})
        story.tell(AgentReplied(text=BIG, calls=(call,), window=40_000))
        story.tell(ToolReturned(value={"bytes": len(BIG)}))
    said = [message for message in prompt(story).messages if message.role == "assistant"]
    assert all(len(one.text) < 5000 and len(one.calls[0].arguments["content"]) < 5000 for one in said[:-1])
    assert said[0].calls[0].arguments["path"] == "a.md" and said[-1].text == BIG
    assert story.run is not None
    whole = story.run.state.turn.exchanges[0].reply.calls[0].arguments["content"]
    assert whole == BIG, "only prompts are shortened, never what was said"


def test_a_single_result_that_is_too_long_for_the_window_is_shortened() -> None:
    story = story_of(BIG, window=5_000)
    assert len(shortenings(story)) == 1 and estimate(prompt(story)) <= 5_000


def too_long(story: Given) -> Given:
    story.tell(Failed(reason="The prompt is too long.", fault="agent", too_long=estimate(prompt(story))))
    return story


def test_a_prompt_that_a_model_refuses_as_too_long_is_shortened_and_sent_again() -> None:
    story = story_of(BIG, BIG, BIG)
    before = estimate(prompt(story))
    too_long(story)
    (event,) = shortenings(story)
    assert "could not take" in event.because and estimate(prompt(story)) <= before / 2
    story.tell(says(done=True))
    assert story.run is not None and story.run.ended is not None and story.run.ended.outcome == "completed"


def test_shortening_after_refusals_is_bounded_and_then_the_run_fails_with_the_sizes() -> None:
    story = story_of(BIG, BIG, BIG)
    sizes = []
    while story.run is not None and not story.run.ended:
        sizes.append(estimate(prompt(story)))
        too_long(story)
    assert sizes == sorted(set(sizes), reverse=True), "each is shorter than the one before"
    assert 2 <= len(sizes) <= len(OLDER) + len(ALL) + 1
    assert story.run is not None and story.run.ended is not None
    assert story.run.ended.outcome == "failed"
    assert f"about {sizes[-1]:,} tokens (estimated)" in story.run.ended.because
    assert "nothing more in it can be shortened" in story.run.ended.because


OWN = "Do it carefully. " * 300


def told(goal: str = "the goal", **values: str) -> Given:
    """A graph whose agents are told the goal, what was said last, and a value."""
    prompt = f"{OWN}{{{{initial_message}}}} {{{{last_agent_content}}}} {{{{value}}}}{OWN}"
    states = (State("s", "a", prompt, (Transition(END, "done"), Transition("s"))),)
    graph = Graph("g", "s", (Agent("a"),), states, initial_message=goal, max_turns=9, values={"value": None})
    return given(GraphStyle(), graph, arguments={"values": {"value": "v", **values}})


@pytest.mark.parametrize("long", ["goal", "said", "value"])
def test_a_first_prompt_that_is_too_long_is_shortened_but_for_the_words_of_its_definition(long: str) -> None:
    story = told(**{long: f"begin {'x' * 1_000_000} end"} if long != "said" else {})
    if long == "said":
        story.tell(says(f"begin {'x' * 1_000_000} end"))
    before = estimate(prompt(story))
    too_long(story)
    (event,) = shortenings(story)
    assert (event.number, event.given, event.longest, event.tokens) == (0, True, GIVEN[0], before)
    task = prompt(story).messages[-1].text
    assert task.startswith(f"{OWN}") and task.endswith(OWN) and "left out here" in task
    assert "begin xxx" in task and "xxx end" in task and estimate(prompt(story)) == event.left < before / 2
    story.tell(says(done=True))
    assert story.run is not None and story.run.ended is not None and story.run.ended.outcome == "completed"


def test_a_first_prompt_that_is_shortened_stays_so_for_the_turn_and_is_whole_in_the_next() -> None:
    story = too_long(told("x" * 200_000))
    story.tell(reads())
    story.tell(ToolReturned(value="ok"))
    assert asked(story)[0].longest_given == GIVEN[0] and len(results(story)) == 1
    assert "left out here" in prompt(story).text
    story.tell(says(step=1))
    assert asked(story)[0].longest_given == 0 and "x" * 200_000 in prompt(story).text


def test_a_first_prompt_beside_results_is_shortened_before_a_call_that_cannot_fit() -> None:
    story = told("x" * 90_000)
    story.tell(reads(window=20_000))
    story.tell(ToolReturned(value="ok"))
    (event,) = shortenings(story)
    assert event.given and estimate(prompt(story)) <= 20_000 and "ok" in results(story)


def test_a_first_prompt_is_shortened_as_often_as_it_helps_then_the_run_fails_with_its_size() -> None:
    story, sizes = told("x" * 500_000), []
    while story.run is not None and not story.run.ended:
        sizes.append(estimate(prompt(story)))
        too_long(story)
    assert sizes == sorted(set(sizes), reverse=True) and 2 <= len(sizes) <= len(GIVEN) + 1
    assert story.run is not None and story.run.ended is not None and story.run.ended.outcome == "failed"
    assert f"about {sizes[-1]:,} tokens (estimated)" in story.run.ended.because
    assert "Choose a model with a larger window" in story.run.ended.because


def test_a_first_prompt_of_nothing_but_its_definition_fails_at_once_with_its_size() -> None:
    story = too_long(told())
    assert shortenings(story) == []
    assert story.run is not None and story.run.ended is not None
    assert story.run.ended.outcome == "failed" and "nothing more in it can be shortened" in story.run.ended.because


@pytest.mark.parametrize("most", [0, 1, 3, 4, 99, 100, 5000])
def test_a_cut_text_keeps_its_beginning_and_its_end(most: int) -> None:
    text = "".join(map(str, range(2000)))
    short = cut(text, most)
    if most == 0 or most > len(text):
        assert short == text
    else:
        assert len(short) <= most + 80 and short.startswith(text[: most - most // 4])
        assert most < 4 or short.endswith(text[-(most // 4) :])
        assert f"{len(text) - most:,} of {len(text):,}" in short


def test_the_estimate_counts_calls() -> None:
    story = ring(1)()
    before = estimate(prompt(story))
    story.tell(reads(content="c" * 9000))
    story.tell(ToolReturned(value="ok"))
    assert estimate(prompt(story)) > before + 3000
