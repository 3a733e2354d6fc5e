"""Every limit holds before the call that would break it."""

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from msgspec.structs import replace

from ripstop.kernel.budget import SMALLEST_REPLY
from ripstop.kernel.effects import AgentReplied, AskAgent, CallTool, Limits, RunFinished, StartRun, ToolReturned, Usage
from ripstop.kernel.events import FORMAT, Asked, GuardTripped, Started, Warned
from ripstop.kernel.prompt import estimate
from ripstop.testing import Errands, ErrandStyle, Given, given

AGENT = AskAgent(agent="ada")
STYLE = ErrandStyle()


def agents(count: int) -> Errands:
    return Errands(rounds=((AGENT,),) * count)


def begun(errands: Errands, limits: Limits, depth: int = 0) -> Given:
    return given(STYLE, errands, limits=limits, depth=depth)


def verdict(story: Given) -> GuardTripped:
    found = [record.event for record in story.records if isinstance(record.event, GuardTripped)]
    assert len(found) == 1, found
    assert story.run is not None and story.run.ended is not None
    assert story.run.ended.outcome == "limit"
    assert story.run.ended.because == found[0].text
    return found[0]


@pytest.mark.req("S1-80")
def test_the_turn_limit_allows_exactly_that_many_turns() -> None:
    story = begun(agents(5), Limits(turns=2))
    story.when(AgentReplied(text="one")).then_asks(AGENT)
    story.when(AgentReplied(text="two")).then_ends("limit", "turns")
    assert story.run is not None and story.run.spent.turns == 2
    found = verdict(story)
    assert (found.guard, found.limit, found.value) == ("budget.turns", 2, 3)


def test_a_call_within_a_turn_counts_as_a_call_and_not_as_a_turn() -> None:
    on = AskAgent(agent="ada", continues=3)
    story = begun(Errands(rounds=((AGENT,), (on,), (on,))), Limits(turns=1, calls=2))
    story.when(AgentReplied(text="one")).then_asks(on)
    story.when(AgentReplied(text="two")).then_ends("limit", "calls")
    assert story.run is not None and (story.run.spent.turns, story.run.spent.calls) == (1, 2)


def test_a_limit_of_no_calls_makes_none() -> None:
    story = begun(agents(1), Limits(calls=0))
    assert verdict(story).guard == "budget.calls"
    assert not any(isinstance(record.event, Asked) for record in story.records)


@pytest.mark.parametrize("command", [AGENT, CallTool(tool="t"), StartRun(workflow="w")])
def test_nothing_is_called_when_the_time_is_up(command: AskAgent | CallTool | StartRun) -> None:
    story = begun(Errands(rounds=((CallTool(tool="slow"),), (command,))), Limits(seconds=10))
    told = story.when(ToolReturned(value=1), after=10)
    told.then_ends("limit", "time limit of 10 s")
    assert told.commands == []


def test_something_is_called_just_before_the_time_is_up() -> None:
    story = begun(agents(2), Limits(seconds=10))
    story.when(AgentReplied(text="one"), after=9.999999).then_asks(AGENT)


def test_a_child_too_deep_is_not_started() -> None:
    errands = Errands(rounds=((StartRun(workflow="w"),),))
    assert begun(errands, Limits(depth=3), depth=2).opened(StartRun)
    found = verdict(begun(errands, Limits(depth=3), depth=3))
    assert (found.guard, found.limit, found.value) == ("depth", 3, 4)


def test_what_a_child_used_counts_as_used() -> None:
    story = begun(Errands(rounds=((StartRun(workflow="w"),), (AGENT,))), Limits(tokens=1000))
    used = Usage(input_tokens=600, output_tokens=399)
    told = story.when(RunFinished(run="story.3", outcome="completed", usage=used))
    told.then_ends("limit", "tokens")


def test_the_reply_is_capped_at_what_the_tokens_leave() -> None:
    story = begun(agents(2), Limits(tokens=500))
    told = story.when(AgentReplied(text="ok", usage=Usage(input_tokens=20, output_tokens=80)))
    (ask,) = told.commands
    assert isinstance(ask, AskAgent)
    assert ask.max_tokens == 500 - 100 - estimate(STYLE.render(told.run.state, ask))


def test_a_smaller_cap_of_the_style_stays() -> None:
    small = AskAgent(agent="ada", max_tokens=20)
    story = begun(Errands(rounds=((small,),)), Limits(tokens=5000, money=1.0, output_price=1.0))
    assert story.run is not None
    assert story.run.open[story.opened(AskAgent)].command == small


def test_a_money_limit_without_prices_holds_once_it_is_reached() -> None:
    story = begun(agents(3), Limits(money=0.5))
    story.when(AgentReplied(text="a", usage=Usage(money=0.4))).then_asks(AskAgent)
    story.when(AgentReplied(text="b", usage=Usage(money=0.1))).then_ends("limit", "money")


def test_a_call_that_could_only_have_a_crumb_of_a_reply_is_not_made() -> None:
    prompt = estimate(STYLE.render(STYLE.begin(agents(1), Started(style="", definition="", format=FORMAT)), AGENT))
    assert begun(agents(1), Limits(tokens=prompt + SMALLEST_REPLY)).opened(AskAgent)
    assert verdict(begun(agents(1), Limits(tokens=prompt + SMALLEST_REPLY - 1))).guard == "budget.tokens"


replies = st.lists(
    st.tuples(
        st.text(max_size=200),
        st.floats(min_value=0, max_value=1),  # how much of the prompt's estimate it really was
        st.floats(min_value=0, max_value=1),  # how much of what it was allowed the agent used
    ),
    max_size=25,
)
prices = st.sampled_from([0.0, 0.15, 3.0, 15.0, 75.0])


@for_all(
    replies=replies,
    tokens=st.none() | st.integers(0, 5000),
    money=st.none() | st.floats(0, 0.05),
    calls=st.none() | st.integers(0, 20),
    turns=st.none() | st.integers(0, 20),
    input_price=prices,
    output_price=prices,
)
def test_no_agent_that_keeps_to_its_cap_can_break_a_limit(
    replies: list[tuple[str, float, float]],
    tokens: int | None,
    money: float | None,
    calls: int | None,
    turns: int | None,
    input_price: float,
    output_price: float,
) -> None:
    limits = Limits(
        tokens=tokens, money=money, calls=calls, turns=turns, input_price=input_price, output_price=output_price
    )
    story = begun(agents(30), limits)
    for text, share_in, share_out in replies:
        assert story.run is not None
        if story.run.ended:
            break
        opened = story.run.open[story.opened(AskAgent)]
        assert isinstance(opened.command, AskAgent)
        prompt = estimate(STYLE.render(opened.state, opened.command))
        cap = opened.command.max_tokens
        usage_in, usage_out = int(prompt * share_in), int((2000 if cap is None else cap) * share_out)
        cost = (usage_in * input_price + usage_out * output_price) / 1_000_000
        story.tell(AgentReplied(text=text, usage=Usage(input_tokens=usage_in, output_tokens=usage_out, money=cost)))
        spent = story.run.spent
        assert tokens is None or spent.usage.tokens <= tokens
        assert money is None or spent.usage.money <= money * (1 + 1e-9) + 1e-12
        assert calls is None or spent.calls <= calls
        assert turns is None or spent.turns <= turns


# A server that reports less than a call must have taken


def short(reported: Usage, counted: int) -> AgentReplied:
    missing = counted - reported.tokens
    return AgentReplied(text="x", model="openai:m", usage=replace(reported, unreported_output=missing))


@pytest.mark.parametrize("reported", [Usage(), Usage(output_tokens=1)])
def test_a_token_limit_counts_what_the_server_does_not_report(reported: Usage) -> None:
    story = begun(agents(9), Limits(tokens=2000))
    story.when(short(reported, 995)).then_asks(AskAgent)
    story.when(short(reported, 995)).then_ends("limit", "tokens")
    assert verdict(story).value > 2000


def test_a_money_limit_counts_what_the_server_does_not_report() -> None:
    story = begun(agents(9), Limits(money=0.02, input_price=1.0, output_price=1.0))
    costly = replace(short(Usage(), 900), usage=Usage(unreported_output=900, unreported_money=0.02))
    story.when(costly).then_ends("limit", "money")


def test_negative_usage_gives_nothing_back() -> None:
    story = begun(agents(9), Limits(tokens=2000))
    story.when(AgentReplied(text="x", usage=Usage(output_tokens=1500))).then_asks(AskAgent)
    story.when(AgentReplied(text="x", usage=Usage(output_tokens=-9000, money=-5.0)))
    assert story.run is not None and story.run.spent.usage == Usage(output_tokens=1500)


def test_a_child_hands_on_what_its_server_did_not_report() -> None:
    story = begun(Errands(rounds=((StartRun(workflow="w"),), (AGENT,))), Limits(tokens=2000))
    usage = Usage(unreported_output=1990)
    story.when(RunFinished(run="c", outcome="completed", usage=usage)).then_ends("limit", "tokens")


def warnings(story: Given) -> list[str]:
    return [record.event.text for record in story.records if isinstance(record.event, Warned)]


def test_a_missing_usage_is_said_once_for_every_model() -> None:
    story = begun(agents(9), Limits())
    for model in ("openai:m", "openai:m", "openai:n", "openai:m"):
        story.when(replace(short(Usage(), 900), model=model))
    first, second = warnings(story)
    assert "'openai:m' does not report how many tokens a call takes; limits count 900" in first
    assert "'openai:n'" in second


def test_a_usage_that_is_much_too_small_is_said_and_an_honest_one_is_not() -> None:
    story = begun(agents(9), Limits(tokens=100_000))
    story.when(short(Usage(output_tokens=800), 900))
    assert warnings(story) == []
    story.when(short(Usage(output_tokens=3), 900))
    assert "reports 3 tokens for a call; limits count 900" in warnings(story)[0]


def test_a_cost_that_is_not_known_is_said_where_money_is_limited() -> None:
    story = begun(agents(9), Limits(money=5.0))
    for _ in range(2):
        story.when(AgentReplied(text="x", model="openai:m", usage=Usage(output_tokens=3)))
    (said,) = warnings(story)
    assert "the money limit does not count" in said
