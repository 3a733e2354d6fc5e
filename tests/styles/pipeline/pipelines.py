"""Pipelines, and the answers that stories about them are made of."""

from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from ripstop.kernel.effects import AgentReplied, Answer, CallTool, Command, PersonAnswered, ToolCall, ToolReturned
from ripstop.kernel.events import FORMAT, Asked, Ended, Event, Fact, Started
from ripstop.kernel.style import arguments_for
from ripstop.styles.pipeline.calls import (
    BEGIN,
    BegunStage,
    CheckedStage,
    ClosedProject,
    FinishedStage,
    OpenedProject,
    ProjectFacts,
    ShownCode,
    WrittenFiles,
)
from ripstop.styles.pipeline.definition import Critic, Pipeline, PipelineStage
from ripstop.styles.pipeline.kit import KIT
from ripstop.testing import Given

IDEA = PipelineStage(name="idea", agent="idea", instructions="Write the idea.", draft="artifacts/idea.md")
PRD = PipelineStage(
    name="prd",
    agent="prd",
    instructions="Write requirements.",
    inputs=("artifacts/idea.md",),
    draft="artifacts/prd_draft.md",
    draft_tools=("read_file",),
    review=True,
    outputs=("data/requirements.json",),
    tools=("create_requirement",),
    critic=Critic("prd_critic", "Check them.", tools=("get_requirements", "provide_feedback")),
)
CODING = PipelineStage(
    name="coding",
    agent="coding",
    draft="artifacts/coding_draft.md",
    review=True,
    tools=("write_file",),
    writes_code=True,
)
CHECK = PipelineStage(name="check", kind="check", agent="check", tools=("goto_stage", "provide_feedback"))
DELIVERY = PipelineStage(name="delivery", kind="delivery", agent="delivery", tools=("save_delivery_report",))
FLOW = Pipeline("flow", (IDEA, PRD, CODING, CHECK, DELIVERY))


def returned(answer: Struct) -> ToolReturned:
    """What a tool of the project has returned."""
    return ToolReturned(value=to_builtins(answer))


OPENED = returned(OpenedProject(idea="a page", code_before={}))
WRITTEN = returned(WrittenFiles({}, ()))
SHOWN = returned(ShownCode("# The code", 1, {"index.html": "1"}))
FINISHED = returned(FinishedStage())
CLOSED = returned(ClosedProject())
DONE = ToolReturned(value={})
"""What an agent's tool has returned."""
PASS = PersonAnswered(choice="pass", by="ann")
GOOD = 'All is there.\n{"verdict": "pass"}'
"""The words of a check that approves."""


def said(text: str) -> AgentReplied:
    return AgentReplied(text=text)


def calls(tool: str, **arguments: Any) -> AgentReplied:
    return AgentReplied(calls=(ToolCall(id="1", tool=tool, arguments=arguments),))


def begun(**texts: str) -> ToolReturned:
    inputs = {f"artifacts/{name}.md": text for name, text in texts.items()}
    return returned(BegunStage(inputs))


def found(*problems: str, **facts: Any) -> ToolReturned:
    return returned(CheckedStage(problems, replace(ProjectFacts(code_files=1), **facts)))


def feedback(text: str, **fields: Any) -> PersonAnswered:
    return PersonAnswered(choice="feedback", text=text, fields=fields, by="ann")


def edit(document: str) -> PersonAnswered:
    return PersonAnswered(choice="edit", document=document, by="ann")


def flow(**changes: Any) -> Pipeline:
    """The pipeline with its `prd` stage changed."""
    stages = tuple(replace(one, **changes) if one.name == "prd" else one for one in FLOW.stages)
    return replace(FLOW, stages=stages)


def tell(story: Given, *answers: Any) -> list[Event]:
    """Tell all of them; returns what came of the last."""
    events: list[Event] = []
    for answer in answers:
        events = story.tell(answer)
    return events


class PipelineStory(Given):
    """A story in which nobody edits a file: where inputs are read again for a prompt, they are the same."""

    def tell(self, fact: Fact | Answer, after: float = 1.0) -> list[Event]:
        events = super().tell(fact, after)
        while self.reads:
            known = arguments(self)["known"]
            events = [*events, *super().tell(returned(BegunStage(same=tuple(known))))]
        return events

    @property
    def reads(self) -> bool:
        commands = [one.command for one in self.run.open.values()] if self.run else []
        return any(isinstance(one, CallTool) and one.tool == BEGIN and bool(one.arguments) for one in commands)


def started(definition: Pipeline = FLOW, of: type[Given] = PipelineStory, **arguments: Any) -> Given:
    story = of(KIT.style, {"definition": definition})
    story.tell(Started(style="pipeline", definition="definition", format=FORMAT, input="a page", arguments=arguments))
    return story


def at_review(definition: Pipeline = FLOW, draft: str = "# Draft") -> Given:
    """A run whose draft of the requirements is being reviewed."""
    story = started(definition)
    tell(story, OPENED, begun(), said("# Idea"), WRITTEN, FINISHED, begun(idea="# Idea"), said(draft), WRITTEN)
    return story


def at_formal(definition: Pipeline = FLOW, review: Answer = PASS) -> Given:
    """A run whose actor is to make the formal requirements."""
    story = at_review(definition)
    tell(story, review, WRITTEN, WRITTEN)
    return story


def at_critic(definition: Pipeline = FLOW) -> Given:
    story = at_formal(definition)
    tell(story, calls("create_requirement", title="One"), ToolReturned(value="REQ-001"), said("Done."), found())
    return story


def at_check(definition: Pipeline = FLOW, **facts: Any) -> Given:
    """A run whose check agent is at work."""
    story = at_critic(definition)
    tell(story, said("Good."), FINISHED)
    tell(story, begun(), said("index.html"), WRITTEN, PASS, WRITTEN, said("Written."), SHOWN, PASS, FINISHED)
    tell(story, begun(), found(**facts))
    return story


def asked(events: list[Event]) -> Any:
    """The command that was asked for last."""
    commands: list[Command] = [event.command for event in events if isinstance(event, Asked)]
    return commands[-1]


def ended(story: Given) -> Ended:
    assert story.run is not None and story.run.ended is not None, "it has not ended"
    return story.run.ended


def prompt(story: Given) -> str:
    """All the words that go to the agent that is asked now."""
    assert story.run is not None
    opened = next(iter(story.run.open.values()))
    rendered = story.style.render(opened.state, opened.command)  # type: ignore[arg-type]
    return "\n".join(message.text for message in rendered.messages)


def arguments(story: Given) -> dict[str, Any]:
    """What the tool that is called now gets."""
    assert story.run is not None
    opened = next(iter(story.run.open.values()))
    return arguments_for(story.style, opened.state, opened.command)  # type: ignore[arg-type]
