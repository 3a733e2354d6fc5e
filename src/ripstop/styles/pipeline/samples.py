"""A small pipeline with answers that lead a run of it to its end, for tests that go over all styles."""

from ripstop.kernel.effects import AgentReplied, Answer, PersonAnswered, ToolCall, ToolReturned, Usage
from ripstop.kernel.style import Sample

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


def _found(code_files: int = 1) -> ToolReturned:
    return ToolReturned(value={"problems": [], "facts": {"code_files": code_files}})


DONE = ToolReturned(value={})
BEGUN = ToolReturned(value={"inputs": {}, "feedback": [], "files": []})


def _idea() -> tuple[Answer, ...]:
    return (ToolReturned(value={"completed": [], "idea": "a page"}), BEGUN, _said("# A page"), DONE, DONE)


def _plan(*reviews: Answer) -> tuple[Answer, ...]:
    formal = (
        DONE,
        _calls("create_task", title="Write it"),
        ToolReturned(value="TASK-001"),
        _said("Planned."),
        _found(),
    )
    return (BEGUN, _said("# Plan"), DONE, *reviews, *formal, _said("It is good."), DONE)


def _reviewed() -> Sample:
    """The draft of the plan is sent back once, then edited."""
    reviews = (
        PersonAnswered(choice="feedback", text="Shorter.", fields={"severity": "minor"}, by="ann"),
        DONE,
        _said("# Short plan"),
        DONE,
        PersonAnswered(choice="edit", document="# My plan\n", by="ann"),
        DONE,
    )
    check = (BEGUN, _found(), _said("All is there."), DONE)
    delivery = (BEGUN, _found(), _calls("save_delivery_report", content="Here."), DONE, _said("Done."), DONE, DONE)
    return Sample("reviewed", _pipeline(), (*_idea(), *_plan(*reviews), *check, *delivery), input="a page")


def _sent_back() -> Sample:
    """The check asks for a restart at the plan."""
    back = _calls("goto_stage", stage="plan", reason="The plan has no tests.")
    check = (BEGUN, _found(), back, DONE, _said("Back to the plan."), DONE, DONE)
    plan = _plan(PersonAnswered(choice="pass"), DONE)
    return Sample("sent_back", _pipeline(), (*_idea(), *plan, *check), input="a page")
