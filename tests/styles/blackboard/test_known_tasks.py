"""The tasks of a board are read when its plan changes, and are always those of the plan."""

from collections.abc import Callable

import pytest

from ripstop.kernel.effects import Answer
from ripstop.styles.blackboard import plan as plans
from ripstop.styles.blackboard.kit import KIT
from ripstop.styles.blackboard.plan import tasks_of
from ripstop.testing import Given
from tests.styles.blackboard.boards import PLAN, begun, checked, decided, edited, iteration, said, tell, written

Reads = Callable[[], int]

UPDATE = "update M1-T1 status to DONE"
CHANGES: dict[str, tuple[Answer, ...]] = {
    "as it was opened": (),
    "one status changed": (decided(dev_plan=UPDATE), written()),
    "two statuses changed": (decided(dev_plan=f"{UPDATE}, update M1-T2 status to DOING"), written()),
    "another plan": (decided(dev_plan_next="- T1: x (status: TODO)\n", dev_plan="update T1 status to DONE"), written()),
    "edited while it was updated": (decided(dev_plan=UPDATE), edited("memory/dev_plan.md", plan=f"{PLAN}- T9: x\n")),
    "edited while a decision was written": (decided(), edited("memory/dev_plan.md", plan="- T9: x\n")),
}


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """How often a plan was read so far."""
    count = 0

    class Counted(plans._Plan):
        def __init__(self, text: str) -> None:
            nonlocal count
            count += 1
            super().__init__(text)

    monkeypatch.setattr(plans, "_Plan", Counted)
    return lambda: count


@pytest.mark.parametrize("answers", CHANGES.values(), ids=list(CHANGES))
def test_the_known_tasks_are_those_of_the_known_plan(answers: tuple[Answer, ...]) -> None:
    story = begun()
    for answer in answers:
        story.tell(answer)
        assert known(story) == tasks_of(story.run.state.known.plan)  # type: ignore[union-attr]
    assert known(story)


def test_an_iteration_that_leaves_the_plan_alone_does_not_read_it(reads: Reads) -> None:
    story = begun()
    before = reads()
    iteration(story, "iteration: 1", task="Write M1-T1.")
    look(story)
    assert (before, reads()) == (1, 1)


def test_an_iteration_that_changes_a_status_reads_the_plan_once(reads: Reads) -> None:
    story = begun()
    before = reads()
    tell(story, decided(task="Write M1-T1.", dev_plan=UPDATE), written(), said("iteration: 1"), checked(), written())
    look(story)
    assert reads() - before == 1


def known(story: Given) -> tuple[plans.PlanTask, ...]:
    assert story.run is not None
    tasks: tuple[plans.PlanTask, ...] = story.run.state.known.tasks
    return tasks


def look(story: Given) -> None:
    assert story.run is not None
    KIT.style.view.picture(story.run)
    KIT.style.view.parts(story.run)
