"""A small pipeline with answers that lead a run of it to its end, for tests that go over all styles."""

from msgspec import Struct, to_builtins

from ripstop.kernel.effects import AgentReplied, Answer, PersonAnswered, ToolCall, ToolReturned, Usage
from ripstop.kernel.style import Sample

from .calls import BegunStage, CheckedStage, ClosedProject, FinishedStage, OpenedProject, ProjectFacts, WrittenFiles
from .definition import Critic, Pipeline, PipelineStage

USAGE = Usage(input_tokens=20, output_tokens=8)


def samples() -> tuple[Sample, ...]:
    return (_reviewed(), _sent_back())


def _pipeline() -> Pipeline:
    plan = PipelineStage(
        name="plan",
        agent="planner",
        inputs=("artifacts/idea.md",),
        draft="artifacts/plan_draft.md",
        review=True,
        outputs=("data/plan.json",),
        tools=("create_task",),
        critic=Critic("plan_critic", tools=("provide_feedback",)),
        max_iterations=2,
    )
    return Pipeline(
        "small",
        (
            PipelineStage(name="idea", agent="thinker", draft="artifacts/idea.md"),
            plan,
            PipelineStage(name="check", kind="check", agent="checker", tools=("goto_stage",)),
            PipelineStage(name="delivery", kind="delivery", agent="writer", tools=("save_delivery_report",)),
        ),
    )


def _said(text: str) -> AgentReplied:
    return AgentReplied(text=text, usage=USAGE)


def _calls(tool: str, **arguments: str) -> AgentReplied:
    return AgentReplied(calls=(ToolCall(id="1", tool=tool, arguments=arguments),), usage=USAGE)


def _returned(answer: Struct) -> ToolReturned:
    return ToolReturned(value=to_builtins(answer))


OPENED = _returned(OpenedProject(idea="a page", code_before={}))
BEGUN = _returned(BegunStage())
WRITTEN = _returned(WrittenFiles({}, ()))
FOUND = _returned(CheckedStage(facts=ProjectFacts(code_files=1)))
FINISHED = _returned(FinishedStage())
CLOSED = _returned(ClosedProject())
DONE = ToolReturned(value={})
"""What an agent's tool returned."""


def _idea() -> tuple[Answer, ...]:
    return (OPENED, BEGUN, _said("# A page"), WRITTEN, FINISHED)


def _plan(*reviews: Answer) -> tuple[Answer, ...]:
    formal = (
        WRITTEN,
        BEGUN,
        _calls("create_task", title="Write it"),
        ToolReturned(value="TASK-001"),
        _said("Planned."),
        FOUND,
        BEGUN,
    )
    return (BEGUN, _said("# Plan"), WRITTEN, *reviews, *formal, _said("It is good."), FINISHED)


def _reviewed() -> Sample:
    """The draft of the plan is sent back once, then edited."""
    reviews = (
        PersonAnswered(choice="feedback", text="Shorter.", fields={"severity": "minor"}, by="ann"),
        WRITTEN,
        BEGUN,
        _said("# Short plan"),
        WRITTEN,
        PersonAnswered(choice="edit", document="# My plan\n", by="ann"),
        WRITTEN,
    )
    check = (BEGUN, FOUND, _said('All is there.\n{"verdict": "pass"}'), FINISHED)
    report = (_calls("save_delivery_report", content="Here."), DONE, _said("Done."))
    delivery = (BEGUN, FOUND, *report, FINISHED, CLOSED)
    return Sample("reviewed", _pipeline(), (*_idea(), *_plan(*reviews), *check, *delivery), input="a page")


def _sent_back() -> Sample:
    """The check asks for a restart at the plan."""
    back = _calls("goto_stage", stage="plan", reason="The plan has no tests.")
    check = (BEGUN, FOUND, back, DONE, _said("Back to the plan."), FINISHED, CLOSED)
    plan = _plan(PersonAnswered(choice="pass"), WRITTEN)
    return Sample("sent_back", _pipeline(), (*_idea(), *plan, *check), input="a page")
