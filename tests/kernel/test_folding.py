"""What single facts and decisions make of a run."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from msgspec import Struct
from msgspec.structs import replace

from ripstop.kernel.doubts import HAPPENED
from ripstop.kernel.effects import (
    AgentReplied,
    AskAgent,
    AskPerson,
    CallTool,
    Failed,
    Guards,
    Limits,
    PersonAnswered,
    RunFinished,
    SetTimer,
    StartRun,
    TimerFired,
    ToolReturned,
    Usage,
)
from ripstop.kernel.errors import UsageError
from ripstop.kernel.events import (
    FORMAT,
    Answered,
    Asked,
    CancelRequested,
    Doubted,
    Ended,
    Event,
    Fact,
    Heard,
    Redefined,
    Resumed,
    ResumeRequested,
    Started,
    TurnRestarted,
    Withdrawn,
)
from ripstop.kernel.resuming import CONTINUE, STOP
from ripstop.kernel.run import Spent
from ripstop.kernel.step import Step
from ripstop.kernel.style import News, Settled, Style
from ripstop.testing import Errands, ErrandStyle, Given, given
from ripstop.testing.stub_style import StubState

STYLE = ErrandStyle()
AGENT, TOOL, PERSON = AskAgent(agent="ada"), CallTool(tool="hammer"), AskPerson(question="Well?")
CHILD = StartRun(workflow="w")
TEA = SetTimer(name="tea", after=5)


class Kettle(ErrandStyle):
    """Does what it hears."""

    def decide(self, step: Step[StubState], news: News) -> None:
        match news:
            case Heard(text="tea"):
                step.ask(SetTimer(name="tea", after=9))
            case Heard(text="coffee"):
                step.ask(SetTimer(name="coffee", after=9))
            case Heard(text="no tea"):
                step.cancel_timer("tea")
            case Heard(text="restart"):
                step.restart_turn(3)
                step.ask(AGENT)
            case Heard(text="own"):
                step.ask(OWN)
            case Settled(command=AskPerson(purpose="errands.more"), answer=PersonAnswered(choice=choice)):
                step.warn(f"the person said {choice}")
            case _:
                super().decide(step, news)


OWN = AskPerson(question="Another round?", purpose="errands.more", choices={CONTINUE: "Continue", STOP: "Stop the run"})


# Timers


def test_a_timer_replaces_the_open_timer_of_the_same_name() -> None:
    story = given(Kettle(), Errands(rounds=((TEA, SetTimer(name="nap", after=1)),)))
    told = story.when(Heard(text="tea"))
    told.then(Withdrawn(number=3, because="replaced by a new one"), Asked(command=SetTimer(name="tea", after=9)))
    assert list(told.run.open) == [4, 7]
    story.when(Answered(to=3, answer=TimerFired())).then_nothing()


def test_a_timer_of_a_new_name_replaces_none() -> None:
    story = given(Kettle(), Errands(rounds=((TEA,),)))
    story.when(Heard(text="coffee")).then(Asked)
    assert story.run is not None and len(story.run.open) == 2


def test_a_timer_is_cancelled_by_its_name_and_only_if_it_is_open() -> None:
    story = given(Kettle(), Errands(rounds=((TEA, PERSON),)))
    story.when(Heard(text="no tea")).then(Withdrawn(number=3, because="cancelled"))
    story.when(Heard(text="no tea")).then()


# Questions of the style


@pytest.mark.parametrize("choice", [CONTINUE, STOP])
def test_a_styles_own_question_with_the_choices_of_a_guard_is_its_own(choice: str) -> None:
    story = given(Kettle(), Errands(rounds=((PERSON,),)), Heard(text="own"))
    question = max(story.run.open) if story.run else 0
    told = story.when(Answered(to=question, answer=PersonAnswered(choice=choice)))
    assert [event.text for event in told.decided] == [f"the person said {choice}"]  # type: ignore[attr-defined]
    assert told.run.ended is None and told.run.verdict is None


def test_it_is_its_own_even_while_a_guard_asks() -> None:
    limits = Limits(calls=1)
    started = Started("errands", "definition", FORMAT, limits=limits, guards={"then": "ask"})
    story = given(Kettle(), Errands(rounds=((AGENT,), (AGENT,))), started, AgentReplied(), Heard(text="own"))
    guards, own = story.run.open if story.run else (0, 0)
    told = story.when(Answered(to=own, answer=PersonAnswered(choice=STOP)))
    assert told.run.ended is None and told.run.asks_about_verdict == guards
    story.when(Answered(to=guards, answer=PersonAnswered(choice=CONTINUE))).then_asks(AGENT)


# Turns, resumes, doubts


def test_a_restarted_turn_counts_once() -> None:
    story = given(Kettle(), Errands(rounds=((AGENT, PERSON),)))
    told = story.when(Heard(text="restart")).then(TurnRestarted(number=3), Asked)
    assert told.run.spent == Spent(1, 2)


def test_a_resume_is_decided_and_raises_limits_and_patience() -> None:
    story = given(STYLE, Errands(rounds=((AGENT,),) * 3), AgentReplied(), limits=Limits(calls=1, money=1.0))
    told = story.when(ResumeRequested(raises={"calls": 2, "money": 0.5, "patience": 3}, by="ann"))
    assert told.decided[0] == Resumed(raises={"calls": 2, "money": 0.5, "patience": 3})
    assert told.run.limits == Limits(calls=3, money=1.5)
    assert told.run.guards == Guards(patience=8)
    assert told.run.ended is None and told.run.verdict is None and told.run.trail == ()


def test_a_resume_of_a_run_at_work_changes_nothing() -> None:
    given(STYLE, Errands(rounds=((AGENT,),))).when(ResumeRequested(raises={"calls": 5})).then_nothing()


def test_a_style_folds_a_resolved_doubt_as_an_answer() -> None:
    story = given(STYLE, Errands(rounds=((TOOL,), (PERSON,))), Doubted(to=3, evidence="?"))
    told = story.when(PersonAnswered(choice=HAPPENED, text="I saw it"))
    assert told.run.state.answers[-1] == "I saw it"
    assert 3 not in told.run.open and told.run.doubts == {}


@pytest.mark.parametrize("answer", [AgentReplied(usage=Usage(9)), Failed(reason="cut off", usage=Usage(9))])
def test_what_a_call_cost_counts_even_if_it_failed(answer: AgentReplied | Failed) -> None:
    assert given(STYLE, Errands(rounds=((AGENT,), (PERSON,)))).when(answer).run.spent == Spent(1, 1, Usage(9))


# Definitions


def test_a_new_definition_is_in_force_at_once_and_what_is_open_stays() -> None:
    story = given(STYLE, Errands(rounds=((AGENT,), (TOOL,))))
    story.contents.definitions["other"] = Errands(rounds=((AGENT,), (PERSON,)))
    told = story.when(Redefined(definition="other", pinned="abc")).then()
    assert (told.run.definition, told.run.pinned, list(told.run.open)) == ("other", "abc", [3])
    story.when(AgentReplied()).then_asks(PERSON)


class Guarded(Errands, frozen=True):
    guards: dict[str, Any] = {}


def test_a_new_definitions_guards_override_the_wishes_for_the_run() -> None:
    started = Started("errands", "definition", FORMAT, guards={"patience": 3, "courtesy": "ignore"})
    story = Given(STYLE, {"definition": Errands(rounds=((AGENT,),)), "other": Guarded(guards={"patience": 7})})
    story.tell(started)
    told = story.when(Redefined(definition="other"))
    assert told.run.guards == Guards(patience=7, courtesy="ignore")


# Arguments


class Wish(Struct, frozen=True, forbid_unknown_fields=True):
    stage: str = ""
    count: int = 1


class Wishful(ErrandStyle):
    arguments_type = Wish


@pytest.mark.parametrize("arguments", [{"stage": 7}, {"pace": 1}, {"count": "many"}])
def test_a_start_with_wrong_arguments_is_refused(arguments: dict[str, Any]) -> None:
    story = Given(Wishful(), {"definition": Errands()})
    told = story.when(Started("errands", "definition", FORMAT, arguments=arguments)).then_refused(UsageError)
    assert story.records == [] and "arguments for a run of style 'errands'" in str(told.error)


def test_arguments_are_read_as_their_type() -> None:
    story = given(Wishful(), Errands(rounds=((AGENT,),)), arguments={"stage": "draft"})
    assert story.run is not None
    assert Wishful().start_arguments(story.run.started) == Wish(stage="draft")


def test_a_style_without_arguments_takes_none() -> None:
    story = Given(STYLE, {"definition": Errands()})
    story.when(Started("errands", "definition", FORMAT, arguments={"x": 1})).then_refused(UsageError)


# Results


class Plans(ErrandStyle):
    """Ends with a result, and keeps the results of its children."""

    RESULT: Mapping[str, Any] = {"steps": ["a", "b"], "by": {"name": "ada", "age": 36}}

    def decide(self, step: Step[StubState], news: News) -> None:
        if isinstance(news, Settled) and isinstance(news.command, AskAgent):
            step.end("completed", "planned", result=self.RESULT)
        else:
            super().decide(step, news)

    def joined(self, state: StubState, number: int, event: Answered, result: Any) -> StubState:
        return replace(state, answers=(*state.answers, result["by"]["name"]))


class Turned(Plans):
    RESULT: Mapping[str, Any] = {"by": {"age": 36, "name": "ada"}, "steps": ["a", "b"]}


def ended(style: Style[Any]) -> Ended:
    (end,) = given(style, Errands(rounds=((AGENT,),))).when(AgentReplied()).decided
    assert isinstance(end, Ended)
    return end


def test_a_result_is_kept_by_its_hash_whatever_the_order_of_its_keys() -> None:
    assert ended(Plans()).result == ended(Turned()).result != ""
    assert len(ended(Plans()).result) == 64


def test_a_parent_gets_the_decoded_result_of_its_child() -> None:
    story = given(Plans(), Errands(rounds=((CHILD,), (PERSON,))))
    digest = ended(Plans()).result
    story.contents.results[digest] = msgspec.json.decode(msgspec.json.encode(Plans.RESULT))
    told = story.when(RunFinished(run="story.3", outcome="completed", result=digest))
    assert told.run.state.answers == ("ada",)


def test_a_child_without_a_result_is_folded_like_any_answer() -> None:
    story = given(Plans(), Errands(rounds=((CHILD,), (PERSON,))))
    told = story.when(RunFinished(run="story.3", outcome="failed", because="no idea"))
    assert told.run.state.answers == ("no idea",)


def test_a_run_that_ends_without_a_result_keeps_nothing() -> None:
    assert ended(STYLE).result == ""


class Unwritten(ErrandStyle):
    def decide(self, step: Step[StubState], news: News) -> None:
        if isinstance(news, Settled):
            step.end("completed", "done", result={"x": object()})
        else:
            super().decide(step, news)


def test_a_result_that_is_not_json_ends_the_run_as_failed() -> None:
    told = given(Unwritten(), Errands(rounds=((AGENT,),))).when(AgentReplied())
    told.then(Ended).then_ends("failed", "bug in ripstop")


# Facts of a style's own


class Knocked(Fact, tag="errands.knocked", frozen=True):
    loud: bool = False


class Door(ErrandStyle):
    def evolve(self, state: StubState, number: int, event: Event) -> StubState:
        if isinstance(event, Knocked):
            return replace(state, answers=(*state.answers, "knock"))
        return super().evolve(state, number, event)

    def decide(self, step: Step[StubState], news: News) -> None:
        if isinstance(news, Knocked):
            step.warn("who is it?")
        else:
            super().decide(step, news)


def test_a_fact_of_the_styles_own_is_folded_and_decided() -> None:
    told = given(Door(), Errands(rounds=((PERSON,),))).when(Knocked(loud=True))
    assert told.run.state.answers == ("knock",)
    assert told.events[0] == Knocked(loud=True) and len(told.decided) == 1


def test_a_cancel_says_by_whom_and_why() -> None:
    story = given(STYLE, Errands(rounds=((TOOL,),)))
    story.when(CancelRequested(by="ann", because="no money")).then_ends("stopped", "cancelled by ann: no money")


def test_an_answer_is_folded_before_the_style_decides() -> None:
    story = given(STYLE, Errands(rounds=((TOOL,), (PERSON,))))
    assert story.when(ToolReturned(value="x")).run.state.answers == ("x",)
