"""A family cannot grow without end, and a call that was cut off is not forgotten."""

from ripstop.kernel.effects import AskAgent, CallTool, Failed, Limits, RunFinished, StartRun
from ripstop.kernel.events import Answered, ResumeRequested, Warned
from ripstop.kernel.guards import MAX_DESCENDANTS
from ripstop.testing import Errands, ErrandStyle, given

CHILD = StartRun(workflow="w")


def test_a_run_with_too_many_descendants_starts_no_other_child() -> None:
    many = RunFinished(run="x", outcome="limit", runs=MAX_DESCENDANTS)
    story = given(ErrandStyle(), Errands(rounds=((CHILD,), (CHILD,))))
    story.when(many).then_ends("stopped", f"{MAX_DESCENDANTS} descendants")


def test_a_child_counts_itself_and_its_descendants() -> None:
    story = given(ErrandStyle(), Errands(rounds=((CHILD,), (CHILD,), (CHILD,))))
    story.tell(RunFinished(run="x", outcome="completed"))
    told = story.when(RunFinished(run="y", outcome="completed", runs=4))
    assert told.run.descendants == 5


def test_a_resumed_run_warns_of_a_call_that_may_have_taken_effect() -> None:
    tool, agent = CallTool(tool="pay"), AskAgent(agent="ada")
    story = given(ErrandStyle(), Errands(rounds=((tool, agent),)), limits=Limits(calls=0))
    assert story.run is not None and story.run.ended
    (number,) = story.run.late
    story.tell(Answered(to=number, answer=Failed(reason="cut off", uncertain=True)))
    told = story.when(ResumeRequested(raises={"calls": 1.0}))
    warned = [event.text for event in told.decided if isinstance(event, Warned)]
    assert len(warned) == 1 and f"record {number}" in warned[0]
    assert told.run.uncertain == (), "it is said once"
