"""The pipeline: stage by stage, with drafts, reviews, outputs that are verified, critics, and the way back."""

import pytest
from msgspec.structs import replace

from ripstop.kernel.effects import (
    AgentReplied,
    AskAgent,
    AskPerson,
    CallTool,
    Failed,
    RunFinished,
    StartRun,
    ToolReturned,
)
from ripstop.kernel.events import Asked, CancelRequested, ResumeRequested, TurnRestarted, Warned
from ripstop.kernel.prompt import Message, tokens_in
from ripstop.kernel.questions import read_answer
from ripstop.styles.pipeline.calls import BegunStage, OpenedProject, WrittenFiles
from ripstop.styles.pipeline.definition import MAX_GOTOS, Critic
from ripstop.styles.pipeline.models import FeedbackEntry
from ripstop.styles.pipeline.state import StageBegan, StageFinished
from ripstop.styles.turn import GO_ON
from ripstop.testing import Given
from tests.styles.pipeline.pipelines import (
    CLOSED,
    CODING,
    DONE,
    FINISHED,
    FLOW,
    GOOD,
    OPENED,
    PASS,
    SHOWN,
    WRITTEN,
    arguments,
    asked,
    at_check,
    at_critic,
    at_formal,
    at_review,
    begun,
    calls,
    edit,
    ended,
    feedback,
    flow,
    found,
    prompt,
    returned,
    said,
    started,
    tell,
)

BACK = calls("goto_stage", stage="prd", reason="a requirement is missing")


def warnings(story: Given) -> list[str]:
    return [record.event.text for record in story.records if isinstance(record.event, Warned)]


def stages_begun(story: Given) -> list[str]:
    return [record.event.stage for record in story.records if isinstance(record.event, StageBegan)]


# Order


@pytest.mark.req("S3-1", "S3-11", "S3-102", "S3-104")
def test_a_stage_begins_only_when_the_one_before_is_finished() -> None:
    story = started()
    events = tell(story, OPENED, begun(), said("# Idea"), WRITTEN)
    assert asked(events) == CallTool(tool="cowork_finish")
    assert stages_begun(story) == ["idea"]
    events = story.tell(FINISHED)
    assert isinstance(events[1], StageFinished) and events[2] == StageBegan(stage="prd")


@pytest.mark.req("S3-9", "S3-12", "S3-65")
def test_an_actor_is_shown_the_inputs_that_were_read_from_disk() -> None:
    story = started()
    tell(story, OPENED, begun(), said("# Idea"), WRITTEN, FINISHED)
    assert arguments(story)["inputs"] == ["artifacts/idea.md"]
    story.tell(begun(idea="what a person wrote since"))
    assert "what a person wrote since" in prompt(story) and "Write requirements." in prompt(story)


@pytest.mark.req("S3-48", "S3-51", "S3-79")
def test_formal_output_comes_after_draft_and_review() -> None:
    story = at_review()
    assert "create_requirement" not in str([record.event for record in story.records])
    events = tell(story, PASS, WRITTEN)
    assert asked(events) == CallTool(tool="cowork_write", arguments={"what": "reset"})
    assert arguments(story)["reset"] == ["data/requirements.json"], "half of an earlier output is not left behind"
    assert asked(story.tell(WRITTEN)).agent == "prd"


@pytest.mark.req("S3-2")
def test_a_stage_without_tools_is_finished_with_its_draft() -> None:
    story = started()
    tell(story, OPENED, begun())
    assert "your reply is the document" in prompt(story)
    story.tell(said("# Idea"))
    assert arguments(story)["files"] == {"artifacts/idea.md": "# Idea\n"}


@pytest.mark.req("S3-17", "S3-18")
def test_a_run_that_is_to_begin_at_an_unknown_stage_fails() -> None:
    assert "Unknown stage 'nowhere'" in ended(started(stage="nowhere")).because


@pytest.mark.req("S3-15", "S3-59")
def test_a_run_can_begin_at_a_later_stage() -> None:
    story = started(mode="continue", stage="coding")
    assert arguments(story)["mode"] == "continue" and arguments(story)["stage"] == "coding"
    story.tell(returned(OpenedProject(("idea", "prd"), "the idea on disk")))
    assert stages_begun(story) == ["coding"]
    story.tell(begun())
    assert "the idea on disk" in prompt(story)


@pytest.mark.req("S3-16")
def test_the_change_that_a_person_wants_is_in_every_prompt_of_the_run() -> None:
    story = started(mode="modify", stage="prd", change="make it blue")
    tell(story, OPENED, begun(idea="# Idea"))
    assert "make it blue" in prompt(story)
    tell(story, said("# Draft"), WRITTEN, PASS, WRITTEN, WRITTEN)
    assert "make it blue" in prompt(story)


# Drafts and reviews


@pytest.mark.req("S3-27", "S3-28", "S3-29", "S3-43")
def test_a_review_shows_the_draft_and_names_its_file() -> None:
    story = at_review(draft="# The draft")
    question = next(iter(story.run.open.values())).command  # type: ignore[union-attr]
    assert isinstance(question, AskPerson)
    assert (question.title, question.purpose) == ("artifacts/prd_draft.md", "review.prd")
    assert story.style.view.document(story.records[question.document - 1]) == "# The draft"


@pytest.mark.req("S3-30", "S3-31", "S3-32", "S3-34")
@pytest.mark.parametrize(
    ("words", "choice"),
    [
        ("pass", "pass"),
        (" PASS ", "pass"),
        ("", "pass"),
        ("pass the tests first", "feedback"),
        ("通过？不行", "feedback"),
    ],
)
def test_words_are_a_choice_only_if_they_are_all_of_it(words: str, choice: str) -> None:
    question = next(iter(at_review().run.open.values())).command  # type: ignore[union-attr]
    assert isinstance(question, AskPerson)
    answer = read_answer(question, words)
    assert answer.choice == choice
    assert answer.text == ("" if choice == "pass" else words)


@pytest.mark.req("S3-32", "S3-35", "S3-36", "S3-41", "S3-42")
def test_feedback_is_stored_and_the_draft_is_written_again_with_it() -> None:
    story = at_review()
    story.tell(feedback("Too many. Merge them into 4.", severity="critical", type="quality_issue"))
    stored = arguments(story)["feedback"]
    assert (stored["details"], stored["severity"]) == ("Too many. Merge them into 4.", "critical")
    assert (stored["feedback_type"], stored["by"], stored["source"]) == ("quality_issue", "ann", "person")
    assert asked(story.tell(WRITTEN)).agent == "prd"
    assert "Too many. Merge them into 4." in prompt(story) and "# Draft" in prompt(story)
    events = tell(story, said("# Four"), WRITTEN)
    assert isinstance(asked(events), AskPerson), "and reviewed again"


@pytest.mark.req("S3-33", "S3-37")
def test_an_edited_text_is_the_draft_and_the_output_is_made_from_it() -> None:
    story = at_review(draft="what the agent wrote")
    edited = "# 我的需求 \r\n\ttabs, trailing blanks   \n\n"
    story.tell(edit(edited))
    assert arguments(story)["files"] == {"artifacts/prd_draft.md": edited}, "to the last character"
    assert asked(tell(story, WRITTEN, WRITTEN)).agent == "prd"
    assert "# 我的需求" in prompt(story) and "what the agent wrote" not in prompt(story)
    assert "Make the formal output" in prompt(story), "and no draft is written again"


def test_a_draft_that_was_edited_in_its_file_while_the_review_waited_counts_as_it_is() -> None:
    for answer in (PASS, feedback("shorter")):
        story = at_review(draft="what the agent wrote")
        story.tell(answer)
        assert arguments(story)["expected"] == {"artifacts/prd_draft.md": "what the agent wrote\n"}
        story.tell(returned(WrittenFiles({}, (), {"artifacts/prd_draft.md": "# By hand\n"})))
        if answer is PASS:
            story.tell(WRITTEN)
        assert "# By hand" in prompt(story) and "what the agent wrote" not in prompt(story)
        assert "was edited while its review waited" in warnings(story)[0]


@pytest.mark.req("S3-46")
def test_the_reviews_of_a_stage_are_bounded_and_can_be_raised() -> None:
    story = at_review(replace(FLOW, max_reviews=2))
    tell(
        story,
        feedback("once"),
        WRITTEN,
        said("# Second"),
        WRITTEN,
        feedback("twice"),
        WRITTEN,
        said("# Third"),
        WRITTEN,
    )
    assert ended(story).outcome == "limit" and "reviewed 2 times" in ended(story).because
    assert asked(story.tell(ResumeRequested(raises={"reviews": 1}))).tool == "cowork_write"
    assert isinstance(asked(story.tell(WRITTEN)), AskPerson)
    tell(story, feedback("thrice"), WRITTEN, said("# Fourth"), WRITTEN)
    assert ended(story).outcome == "limit"


def test_files_in_the_text_of_a_draft_are_part_of_the_draft() -> None:
    story = at_check(replace(FLOW, stages=FLOW.stages))
    assert not warnings(story)
    draft = "I will write:\n\nindex.html\n```html\n<p>hi</p>\n```\n\nscript.js\n```js\n1\n```\n"
    other = started(mode="continue", stage="coding")
    tell(other, OPENED, begun(), said(draft))
    assert arguments(other)["files"] == {"artifacts/coding_draft.md": draft.rstrip() + "\n"}
    assert not warnings(other)


def test_a_draft_that_comes_as_the_draft_file_is_taken_out_of_its_block() -> None:
    story = started()
    tell(story, OPENED, begun())
    story.tell(said("Here you are.\n\n.cowork/artifacts/idea.md\n```markdown\n# Idea\n\nA page.\n```\n"))
    assert arguments(story)["files"] == {"artifacts/idea.md": "# Idea\n\nA page.\n"}


def test_an_actor_is_told_twice_that_its_draft_is_empty_and_then_the_stage_fails() -> None:
    story = started()
    tell(story, OPENED, begun(), said(" \n"))
    assert "Your draft is empty" in prompt(story)
    tell(story, said(""), said(""))
    assert "the draft of 'idea' is empty" in ended(story).because


@pytest.mark.req("S3-44")
def test_an_actor_that_asks_the_user_is_not_answered_but_reviewed() -> None:
    story = at_review(draft="Which colour do you want?")
    assert isinstance(next(iter(story.run.open.values())).command, AskPerson)  # type: ignore[union-attr]


# Outputs


@pytest.mark.req("S3-67", "S3-49")
def test_an_output_that_is_not_valid_goes_back_to_the_actor_with_what_is_wrong() -> None:
    story = at_formal()
    tell(story, said("Done."), found("data/requirements.json is missing"))
    assert "data/requirements.json is missing" in prompt(story)
    tell(story, said("Done, really."), found("it is still missing"))
    tell(story, said("I swear."), found("it is still missing"))
    assert ended(story).outcome == "failed" and "it is still missing" in ended(story).because


def test_a_stage_whose_output_was_refused_tells_the_actor_once_more_when_it_is_resumed() -> None:
    story = at_formal()
    tell(story, *[said("Done."), found("one is missing")] * 3)
    assert asked(story.tell(ResumeRequested())) == CallTool(tool="cowork_check"), "a person may have mended it"
    story.tell(found("one is missing"))
    assert "one is missing" in prompt(story)
    tell(story, calls("create_requirement", title="One"), ToolReturned(value="REQ-001"), said("Now."))
    assert asked(story.tell(found())).agent == "prd_critic"


def test_an_actor_may_call_only_the_tools_of_its_stage() -> None:
    story = at_formal()
    events = story.tell(calls("goto_stage", stage="idea", reason="no"))
    assert isinstance(asked(events), AskAgent)
    assert "may not call 'goto_stage'; it may call: create_requirement" in str(story.records[-2].event)


@pytest.mark.req("S3-90")
def test_a_tool_that_fails_is_told_to_the_agent() -> None:
    story = at_formal()
    tell(story, calls("create_requirement", title=""), Failed(reason="the title is empty", fault="agent"))
    assert any("the title is empty" in message.text for message in _messages(story))


def _messages(story: Given) -> tuple:  # type: ignore[type-arg]
    assert story.run is not None
    opened = next(iter(story.run.open.values()))
    return story.style.render(opened.state, opened.command).messages  # type: ignore[arg-type]


@pytest.mark.req("S3-93")
def test_a_model_call_that_fails_fails_the_stage_and_resume_continues_there() -> None:
    story = at_formal()
    tell(story, calls("create_requirement", title="One"), ToolReturned(value="REQ-001"), Failed(reason="no network"))
    assert ended(story).outcome == "failed" and "'prd' failed: no network" in ended(story).because
    question = asked(story.tell(ResumeRequested()))
    assert isinstance(question, AskAgent) and question.continues, "behind the call that was made"


def too_long(story: Given) -> None:
    story.tell(Failed(reason="too long", fault="agent", too_long=tokens_in([Message("user", prompt(story))])))


def test_a_prompt_that_is_too_long_keeps_the_instructions_and_shortens_what_the_stage_was_given() -> None:
    story = started(mode="continue", stage="prd")
    tell(story, OPENED, begun(idea="x" * 900_000, other="# Short"))
    too_long(story)
    told = prompt(story)
    assert "Write requirements." in told and "# File .cowork/artifacts/other.md\n# Short" in told
    assert "# File .cowork/artifacts/idea.md\nxxx" in told and "characters are left out here" in told
    assert len(told) < 30_000
    tell(story, said("# Draft"), WRITTEN)
    assert story.run is not None and not story.run.ended


@pytest.mark.parametrize("at", ["check", "critic"])
def test_nobody_who_judges_is_kept_from_it_by_the_length_of_what_there_is(at: str) -> None:
    story = at_check(missing_files=tuple(f"{'y' * 900}{number}.js" for number in range(90))) if at == "check" else None
    if story is None:
        story = started(mode="continue", stage="prd")
        tell(story, OPENED, begun(idea="x" * 900_000), said("# Draft"), WRITTEN, PASS, WRITTEN, WRITTEN)
        tell(story, calls("create_requirement", title="One"), ToolReturned(value="REQ-001"), said("Done."), found())
    before = len(prompt(story))
    too_long(story)
    assert len(prompt(story)) < before / 2 and story.run is not None and not story.run.ended


def test_a_draft_that_was_cut_off_is_continued_and_kept_whole() -> None:
    story = started(mode="continue", stage="prd")
    tell(story, OPENED, begun())
    assert asked(story.tell(AgentReplied(text="# A list\n\n1. Ad", cut=True))).continues
    assert GO_ON in prompt(story)
    story.tell(said("d a task.\n2. Remove it.\n"))
    assert arguments(story)["files"] == {"artifacts/prd_draft.md": "# A list\n\n1. Add a task.\n2. Remove it.\n"}


@pytest.mark.parametrize("at", [3, 20, 27])
def test_a_verdict_that_was_cut_off_counts_when_it_is_whole(at: int) -> None:
    story = at_check()
    assert asked(story.tell(AgentReplied(text=GOOD[:at], cut=True))).continues
    assert asked(story.tell(said(GOOD[at:]))).tool == "cowork_finish"


def test_a_draft_whose_call_failed_begins_again() -> None:
    story = started()
    tell(story, OPENED, begun(), Failed(reason="no network"))
    events = story.tell(ResumeRequested())
    assert any(isinstance(event, TurnRestarted) for event in events)
    assert asked(events).agent == "idea" and asked(events).continues is None


# Critics


@pytest.mark.req("S3-45", "S3-50", "S3-80")
def test_a_critic_without_grave_findings_ends_the_stage() -> None:
    story = at_critic()
    question = next(iter(story.run.open.values())).command  # type: ignore[union-attr]
    assert isinstance(question, AskAgent) and question.agent == "prd_critic"
    small = calls("provide_feedback", feedback_type="suggestion", severity="minor", details="a comma")
    events = tell(story, small, ToolReturned(value="noted"), said("Good."))
    assert asked(events) == CallTool(tool="cowork_finish")
    assert not warnings(story)


GRAVE = calls("provide_feedback", feedback_type="missing_requirement", severity="major", details="no login")


@pytest.mark.req("S3-45", "S3-46", "S3-47")
def test_a_grave_finding_starts_one_more_iteration_where_that_is_allowed() -> None:
    story = at_critic(flow(max_iterations=2))
    events = tell(story, GRAVE, ToolReturned(value="noted"), said("Not good."))
    assert StageBegan(stage="prd", iteration=2) in events
    assert asked(events) == CallTool(tool="cowork_begin"), "its state comes from the files"
    history = FeedbackEntry(stage="prd", severity="major", feedback_type="x", details="no login", by="prd_critic")
    story.tell(returned(BegunStage(feedback=(history,))))
    assert "no login" in prompt(story) and "# Draft" in prompt(story)


@pytest.mark.req("S3-46")
def test_a_grave_finding_in_the_last_iteration_is_shown_and_the_run_goes_on() -> None:
    story = at_critic()
    events = tell(story, GRAVE, ToolReturned(value="noted"), said("Not good."))
    assert asked(events) == CallTool(tool="cowork_finish")
    assert warnings(story) == ["prd_critic found a major problem that is still open: no login"]


# Check and delivery


@pytest.mark.req("S3-7", "S3-78")
def test_the_check_agent_is_shown_what_the_engine_found() -> None:
    story = at_critic()
    tell(story, said("Good."), FINISHED, begun(), said("index.html"), WRITTEN, PASS, WRITTEN, said("Written."))
    tell(story, SHOWN, PASS, FINISHED, begun(), found(uncovered=("FEAT-002",)))
    assert "FEAT-002" in prompt(story)


@pytest.mark.req("S3-52", "S3-53", "S3-55", "S3-56")
def test_a_check_that_goes_back_never_delivers() -> None:
    story = at_check()
    tell(story, BACK, DONE, said("Back."))
    assert arguments(story)["is_finished"] is False, "the report is written, and the stage is not marked"
    tell(story, FINISHED, CLOSED)
    assert ended(story).outcome == "restart"
    assert ended(story).because == "The stage 'check' asks for a restart at 'prd': a requirement is missing"
    assert "delivery" not in stages_begun(story)
    assert not story.style.ending(story.run.state).is_resumable  # type: ignore[union-attr]


def test_a_way_back_to_a_later_stage_or_an_unknown_one_is_not_taken() -> None:
    for wrong in ("check", "delivery", "idea", "nowhere"):
        story = at_check()
        tell(story, calls("goto_stage", stage=wrong, reason="?"), DONE, said(GOOD), FINISHED)
        assert stages_begun(story)[-1] == "delivery"
        assert "is not an earlier stage" in warnings(story)[0]


def test_with_auto_goto_the_run_goes_back_itself_and_removes_what_came_after() -> None:
    story = at_check(replace(FLOW, auto_goto=True))
    tell(story, BACK, DONE, said("Back."), FINISHED)
    wanted = arguments(story)
    assert (wanted["mode"], wanted["stage"]) == ("modify", "prd")
    tell(story, returned(OpenedProject(("idea",), "a page")), begun(idea="# Idea"))
    assert "a requirement is missing" in prompt(story)


def test_auto_goto_goes_back_a_bounded_number_of_times() -> None:
    story = at_check(replace(FLOW, auto_goto=True))
    jumps = 0
    while jumps <= MAX_GOTOS:
        events = tell(story, BACK, DONE, said("Back."), FINISHED)
        if asked(events).tool == "cowork_close":
            story.tell(CLOSED)
            break
        jumps += 1
        tell(story, OPENED, begun(), said(f"# Draft {jumps}"), WRITTEN, PASS, WRITTEN, WRITTEN)
        made = calls("create_requirement", title=f"Number {jumps}")  # the same every time would be a cycle
        tell(story, made, DONE, said("Done."), found(), said("Good."), FINISHED)
        tell(
            story,
            begun(),
            said(f"index-{jumps}.html"),
            WRITTEN,
            PASS,
            WRITTEN,
            said("Written."),
            SHOWN,
            PASS,
            FINISHED,
            begun(),
            found(),
        )
    assert jumps == MAX_GOTOS and ended(story).outcome == "restart"


@pytest.mark.req("S3-73", "S3-74", "S3-75")
def test_without_code_files_nothing_is_delivered() -> None:
    story = at_check()
    tell(story, said(GOOD), FINISHED, begun(), found(code_files=0, tasks=(3, 3)))
    assert ended(story).outcome == "failed"
    assert ended(story).because.startswith("❌ Project incomplete: No code files found")
    assert asked(story.tell(ResumeRequested())) == CallTool(tool="cowork_check"), "somebody may have written them"


@pytest.mark.req("S3-8", "S3-98", "S3-103")
def test_the_report_has_the_prose_of_the_agent_the_decisions_and_the_cost() -> None:
    story = at_check()
    tell(story, said(GOOD), FINISHED, begun(), found())
    tell(story, calls("save_delivery_report", content="A page was built."), DONE, said("Bye."))
    report = arguments(story)["report"]
    assert report["path"] == "artifacts/delivery_report.md" and report["prose"] == "A page was built."
    assert [one["choice"] for one in report["decisions"]] == ["pass", "pass", "pass"]
    assert report["cost"]["calls"] == story.run.spent.calls  # type: ignore[union-attr]
    tell(story, FINISHED, CLOSED)
    assert ended(story).outcome == "completed"
    assert not story.style.ending(story.run.state).is_resumable  # type: ignore[union-attr]


# Workflows as stages

LOOP = replace(CODING, agent="", tools=(), workflow="review-loop", draft="", review=False)


def test_a_workflow_can_make_the_output_of_a_stage() -> None:
    coding = replace(LOOP, critic=Critic("coding_critic"))
    story = started(replace(FLOW, stages=(*FLOW.stages[:2], coding, *FLOW.stages[3:])), mode="continue", stage="coding")
    command = asked(tell(story, OPENED, begun()))
    assert isinstance(command, StartRun) and command.workflow == "review-loop"
    events = story.tell(RunFinished(run="story.7", outcome="completed", because="both agree"))
    assert asked(events).agent == "coding_critic"


def test_a_workflow_that_fails_fails_its_stage_and_is_started_again_by_resume() -> None:
    story = started(replace(FLOW, stages=(*FLOW.stages[:2], LOOP)), mode="continue", stage="coding")
    tell(story, OPENED, begun(), RunFinished(run="story.7", outcome="failed", because="no model"))
    assert "ended as failed (story.7): no model" in ended(story).because
    assert isinstance(asked(story.tell(ResumeRequested())), StartRun)


# Resuming


@pytest.mark.req("S3-25", "S3-91")
def test_whatever_tool_fails_resume_takes_the_same_step_again() -> None:
    answers = [OPENED, begun(), said("# Idea"), WRITTEN, FINISHED, begun(idea="# Idea"), said("# Draft"), WRITTEN]
    answers += [feedback("no"), WRITTEN, said("# Other"), WRITTEN, edit("# Mine"), WRITTEN, WRITTEN]
    answers += [calls("create_requirement", title="One"), DONE, said("Done."), found(), said("Good."), FINISHED]
    for place in range(len(answers) + 1):
        story = started()
        tell(story, *answers[:place])
        command = next(iter(story.run.open.values())).command  # type: ignore[union-attr]
        if not (isinstance(command, CallTool) and not command.agent):
            continue
        story.tell(Failed(reason="disk full"))
        assert "disk full" in ended(story).because
        assert asked(story.tell(ResumeRequested())) == command
        tell(story, *answers[place:])
        assert story.run is not None and story.run.ended is None


def test_a_cancelled_run_is_not_resumed() -> None:
    story = at_review()
    story.tell(CancelRequested(by="ann"))
    assert not story.style.ending(story.run.state).is_resumable  # type: ignore[union-attr]


def test_every_question_of_a_run_is_asked_once() -> None:
    story = at_check()
    questions = [
        r.event for r in story.records if isinstance(r.event, Asked) and isinstance(r.event.command, AskPerson)
    ]
    assert [question.command.purpose for question in questions] == ["review.prd", "review.coding", "review.coding.code"]  # type: ignore[union-attr]
