"""One sentence a record, for people."""

from typing import Any

import msgspec
import pytest
from hypothesis import given as for_all
from hypothesis import settings

from ripstop.history.narration import cut, first_words, in_short, is_trouble, sentence, shown_seconds, trouble
from ripstop.kernel.effects import (
    AgentReplied,
    AskAgent,
    AskPerson,
    CallTool,
    Content,
    Failed,
    PersonAnswered,
    RunFinished,
    Say,
    SetTimer,
    StartRun,
    TimerFired,
    ToolCall,
    ToolReturned,
)
from ripstop.kernel.events import (
    KERNEL_EVENTS,
    Answered,
    Asked,
    CancelRequested,
    ChildSpoke,
    Doubted,
    DoubtResolved,
    Ended,
    Event,
    Forked,
    GuardTripped,
    Heard,
    Record,
    Repeated,
    Resumed,
    ResumeRequested,
    RunSettings,
    SettingsChanged,
    TurnRestarted,
    Warned,
    Withdrawn,
)
from ripstop.kernel.style import Style
from ripstop.styles.conversation.kit import KIT as CONVERSATION
from ripstop.styles.graph.kit import KIT as GRAPH
from ripstop.styles.graph.state import TurnFinished
from ripstop.styles.handoff.events import TransitionRefused
from ripstop.styles.turn import Denied
from ripstop.testing import Errands, ErrandStyle, Given, given
from tests.engine.looked_at import PLUGINS
from tests.kernel.test_codec import values

EVENTS: tuple[type[Event], ...] = tuple(
    dict.fromkeys((*KERNEL_EVENTS, *(event for kit in PLUGINS.kits for event in kit.events)))
)
ADA = AskAgent(agent="ada", model="local")
PAY = CallTool(tool="pay", arguments={"euros": 5, "to": "bob", "note": ""})
ROUND = (
    ADA,
    PAY,
    AskPerson(question="Is it good?", to="ann"),
    SetTimer(name="idle", after=300),
    StartRun(workflow="w"),
)
STORY = given(ErrandStyle(), Errands(rounds=(ROUND,)))
BY_KIND = {type(opened.command): number for number, opened in (STORY.run.open if STORY.run else {}).items()}


def told(event: Event, style: Style[Any] | None = None, story: Given = STORY) -> str:
    """The sentence for what comes next in a story, 4.1 seconds after it."""
    assert story.run is not None
    record = Record(story.run.length + 1, story.now + 4_100_000, event)
    return sentence(style or story.style, record, story.run, story.run)


def answered(kind: type, answer: Any, **more: Any) -> Answered:
    return Answered(to=BY_KIND[kind], answer=answer, **more)


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (answered(AskAgent, AgentReplied(text="A poem.\n\nIt  rains.")), "ada replied in 4.1 s: A poem. It rains."),
        (answered(AskAgent, AgentReplied(text="Hm."), took=31.4, attempt=2), "ada replied in 31 s at attempt 2: Hm."),
        (
            answered(AskAgent, AgentReplied(calls=(ToolCall("1", "read_file"), ToolCall("2", "read_file")))),
            "ada replied in 4.1 s and calls read_file",
        ),
        (answered(CallTool, ToolReturned(value="paid"), took=0.25), "tool pay returned in 0.2 s: paid"),
        (answered(CallTool, ToolReturned(value={"n": [1, None]})), 'tool pay returned in 4.1 s: {"n":[1,null]}'),
        (answered(CallTool, Failed(reason="no money")), "tool pay failed in 4.1 s: no money"),
        (answered(AskPerson, PersonAnswered(choice="pass", by="ann")), "ann answered pass"),
        (answered(AskPerson, PersonAnswered(text="Shorter.")), "a person answered: Shorter."),
        (
            answered(AskPerson, PersonAnswered(choice="edit", document="# New", by="ann")),
            "ann answered edit with an edited document",
        ),
        (answered(SetTimer, TimerFired()), "timer idle fired"),
        (
            answered(StartRun, RunFinished(run="story.7", outcome="completed", because="done")),
            "child story.7 ended as completed in 4.1 s: done",
        ),
        (Asked(ADA), "asked ada (local)"),
        (Asked(AskAgent(agent="ada", continues=3)), "asked ada again"),
        (Asked(PAY), "called tool pay: euros 5, to bob"),
        (Asked(ROUND[2]), "asked ann: Is it good?"),
        (Asked(SetTimer(name="idle", after=300)), "timer idle was set for 300 s"),
        (Asked(Say(text="Hello", channel="mail", to="ann")), "said to ann on mail: Hello"),
        (Asked(Say(about=4)), "said: the words of record 4"),
        (Asked(StartRun(workflow="poem")), "started poem as story.8"),
        (Heard("Hurry", by="bob", attachments=(Content("0"),)), "bob wrote (1 attachment): Hurry"),
        (ChildSpoke(7, "story.7", 2, ask=AskPerson(question="Well?")), "story.7 asks: Well?"),
        (CancelRequested("ann", "enough"), "ann cancelled it: enough"),
        (ResumeRequested({"turns": 5.0}, "ann"), "ann resumed it, turns raised by 5"),
        (Resumed({"turns": 5.0}), "resumed, turns raised by 5"),
        (SettingsChanged(RunSettings(model="local"), "ann"), "ann changed the settings: model local"),
        (Forked("other", 12, "0"), "forked from other at record 12, with a new definition"),
        (Doubted(BY_KIND[CallTool], "Its worker died."), "tool pay may or may not have taken effect: Its worker died."),
        (
            DoubtResolved(BY_KIND[CallTool], ToolReturned(value="It was paid.")),
            "a person said what became of tool pay: It was paid.",
        ),
        (Repeated(BY_KIND[CallTool]), "tool pay is performed again"),
        (Withdrawn(BY_KIND[CallTool], "cancelled"), "tool pay is no longer needed: cancelled"),
        (TurnRestarted(3), "the turn that began with record 3 is restarted"),
        (GuardTripped("no_progress", 5, 5, "Nothing changed."), "guard no_progress stopped it: Nothing changed."),
        (Warned("a file is missing"), "warning: a file is missing"),
        (Ended("completed", "all is done"), "ended as completed: all is done"),
        (
            TurnFinished(agent="ada", digest="0f", reply=3, to="judge", via=0),
            "turn finished (ada): to judge",
        ),
        (
            TransitionRefused(action="complete", by="bob", reason="not the owner"),
            "transition refused (bob): action complete, reason not the owner",
        ),
    ],
    ids=lambda given: type(given).__name__ if isinstance(given, Event) else "",
)
def test_says_who_did_what(event: Event, says: str) -> None:
    assert told(event) == says


def test_the_words_of_a_reply_are_told_without_the_envelope() -> None:
    text = msgspec.json.encode({"content": "It is good.", "decisions": {"approved": True}}).decode()
    reply = answered(AskAgent, AgentReplied(text=f"<think>Well…</think>{text}"))
    assert told(reply, GRAPH.style) == "ada replied in 4.1 s: It is good."
    spoken = answered(
        AskAgent, AgentReplied(text='{"next_status": "typing", "action": null, "reasoning": "hm", "response": "你好"}')
    )
    assert told(spoken, CONVERSATION.style) == "ada replied in 4.1 s: 你好"


def test_a_file_in_a_reply_is_left_out_unless_it_is_all() -> None:
    file = "notes/a.md\n```md\nLong text\n```\n"
    assert first_words(GRAPH.style, f"Here:\n\n{file}\nThat is all.", 80) == "Here: That is all."
    assert first_words(GRAPH.style, file, 80) == "notes/a.md ```md Long text"
    nested = "notes/a.md\n````md\n```\nLong text\n```\nmore\n````\n"
    assert first_words(GRAPH.style, f"Here:\n\n{nested}\nThat is all.", 80) == "Here: That is all."
    assert first_words(GRAPH.style, f'{file}```json\n{{"content": "Done."}}\n```', 80) == "Done."


@pytest.mark.parametrize("kind", EVENTS, ids=[str(kind.__struct_config__.tag) for kind in EVENTS])
def test_a_sentence_is_short_and_on_one_line_whatever_happened(kind: type[Event]) -> None:
    @settings(max_examples=25, deadline=None)
    @for_all(event=values(kind))
    def is_told(event: Event) -> None:
        said = told(event)
        assert said and len(said) <= 300 and "\n" not in said
        record = Record(9, STORY.now, event)
        text = in_short(trouble(record, STORY.run))
        assert bool(text) == is_trouble(record) and len(text) <= 120 and "\n" not in text

    is_told()


def test_long_texts_are_cut_and_say_so() -> None:
    said = told(answered(AskAgent, AgentReplied(text="rain " * 100_000)))
    assert len(said) <= 300 and said.endswith("…")
    assert cut("a\nb  c", 10) == "a b c" and cut("abcdef", 4) == "abc…"
    assert cut(f"a{' ' * 1000}b", 10) == "a…"
    assert cut("abcd ", 4) == cut(" abcd", 4) == "abcd"
    assert cut("abc d", 4) == "abc…" and cut("ab cd", 4) == "ab…"


@pytest.mark.parametrize(
    ("event", "is_one"),
    [
        (answered(AskAgent, AgentReplied(text="Fine.")), False),
        (answered(AskAgent, AgentReplied(text="Fine."), attempt=2), True),
        (answered(AskAgent, AgentReplied(text="Fine."), retries=(("busy", 1.0),)), True),
        (answered(CallTool, Failed(reason="no")), True),
        (answered(StartRun, RunFinished(run="r", outcome="completed")), False),
        (answered(StartRun, RunFinished(run="r", outcome="limit")), True),
        (Ended("completed", "done"), False),
        (Ended("failed", "oh"), True),
        (Doubted(1, "?"), True),
        (Warned("odd"), True),
        (TurnRestarted(2), True),
        (Denied(reply=3, index=0, reason="not allowed"), True),
        (Withdrawn(2, "a message came"), False),
        (CancelRequested(), False),
    ],
)
def test_trouble_is_what_went_wrong_or_was_done_again(event: Event, is_one: bool) -> None:
    assert is_trouble(Record(9, 0, event)) is is_one


def test_seconds_are_told_in_one_unit() -> None:
    assert [shown_seconds(one) for one in (0.04, 1.0, 9.96, 59.7, 119, 300, 7200, 86_400, 200_000)] == [
        "0 s",
        "1 s",
        "10 s",
        "60 s",
        "119 s",
        "5 min",
        "2 h",
        "24 h",
        "2 d",
    ]
