"""Scenes of agents that go round in circles, and of agents that only look as if they did.

- A scene is data: how it begins, and what is told in its n-th round. A round of a graph is one turn; a round of a
  document is one handling of it (or one message about it).
- A `Loop` says in which round it is stopped, by which guard, and in which round the last progress was made.
- A `Healthy` one says in which round it is completed. No guard may say a word.
"""

import json
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from ripstop.kernel.effects import (
    AgentReplied,
    Answer,
    AskPerson,
    Failed,
    Limits,
    StartRun,
    TimerFired,
    ToolCall,
    ToolReturned,
    Usage,
)
from ripstop.kernel.events import Fact, GuardTripped
from ripstop.styles.graph.definition import END, Agent, Graph, State, Transition
from ripstop.styles.graph.style import GraphStyle
from ripstop.testing import Errands, ErrandStyle, Given, given

Round = tuple[Fact | Answer, ...]
Goes = Callable[[int], Round]
Settle = Callable[[Given], None]
MARKER = "[WORKFLOW_END]"


class Loop(Struct, frozen=True):
    id: str
    begin: Callable[[], Given]
    goes: Goes
    rounds: int
    """It is stopped in exactly this one; 0: before the first."""
    guard: str
    outcome: str = "stopped"
    progress: int = 0
    """The round in which the last progress was made; 0: the guard names none."""
    interactions: int | None = None
    """Of a document: how many it has had when it is stopped."""


class Healthy(Struct, frozen=True):
    id: str
    begin: Callable[[], Given]
    goes: Goes
    rounds: int


# Playing


def nothing(story: Given) -> None:
    pass


def play(story: Given, goes: Goes, most: int, settle: Settle = nothing) -> int:
    """Go on until the run has ended or a person is asked, for at most so many rounds; returns how many it were.

    `settle` answers what the style asks for on the side.
    """
    settle(story)
    for number in range(1, most + 1):
        for told in goes(number):
            if over(story):
                return number
            story.tell(told)
            settle(story)
        if over(story):
            return number
    return most


def over(story: Given) -> bool:
    assert story.run is not None
    asks = any(isinstance(opened.command, AskPerson) for opened in story.run.open.values())
    return story.run.ended is not None or asks


# Graphs


def ring(size: int, limits: Limits = Limits(), **more: Any) -> Callable[[], Given]:
    """So many agents, each of whom gives the word to the next until one says that it is done."""
    names = [f"s{place}" for place in range(size)]
    states = tuple(
        State(name, f"agent_{name}", "Go.", (Transition(END, "done"), Transition(names[(place + 1) % size])))
        for place, name in enumerate(names)
    )
    agents = tuple(Agent(state.agent) for state in states)
    more = {"max_turns": 100, "initial_message": "the goal", **more}
    graph = Graph(name="g", start="s0", agents=agents, states=states, **more)
    return lambda: given(GraphStyle(), graph, limits=limits)


def says(content: str = "Over to you.", usage: Usage = Usage(), **decisions: Any) -> AgentReplied:
    return AgentReplied(text=json.dumps({"content": content, "decisions": decisions}), usage=usage)


def writes(path: str, text: str, *results: Answer, recorded: bool = False, **reply: Any) -> Round:
    """A reply with a file in it, and what came of writing it."""
    text = f"{path}\n```\n{text}\n```\n\n{says(**reply).text}"
    return (AgentReplied(text=text, recorded=recorded), *(results or (ToolReturned(value="written"),)))


def calls(tool: str, arguments: dict[str, Any], result: Answer, **decisions: Any) -> Round:
    call = ToolCall(id="1", tool=tool, arguments=arguments)
    return (AgentReplied(text="Let me see.", calls=(call,)), result, says(**decisions))


def same(words: Callable[[int], str] = lambda n: "Over to you.", **decisions: Any) -> Goes:
    """The same decisions in every turn, whatever the words."""
    return lambda n: (says(words(n), **decisions),)


def counting(n: int) -> Round:
    """Real work: something else is decided in every turn."""
    return (says(step=n),)


def after(rounds: int, then: Goes, first: Goes = counting) -> Goes:
    return lambda n: first(n) if n <= rounds else then(n - rounds)


def until(rounds: int, goes: Goes, last: Round = (says("All is done.", done=True),)) -> Goes:
    return lambda n: goes(n) if n < rounds else last


def in_turn(*rounds: Round) -> Goes:
    """These rounds, again and again."""
    return lambda n: rounds[(n - 1) % len(rounds)]


def rising(n: int) -> Round:
    """The writer always decides the same; the reviewer's score rises."""
    return (says("Have a look.", ready=True) if n % 2 else says("Better.", score=n),)


def same_but(other: int) -> Goes:
    """The same in every turn, but for one turn."""
    return lambda n: (says(go=n != other),)


WORDS: dict[str, Callable[[int], str]] = {
    "identical-words": lambda n: "I agree. What do you think?",
    "paraphrased": lambda n: f"Put differently ({n}), {['we agree', 'I concur', 'same here', 'indeed'][n % 4]}.",
    "ever-longer-words": lambda n: "Let me elaborate. " * n,
}
COURTESIES = {
    "english": ("Thank you so much!", "You're welcome!", "Thanks! The login page is written, 14 tests pass."),
    "chinese": ("谢谢！", "不客气", "收到，谢谢！登录页面已经写好，测试通过。"),
    "japanese": ("ありがとうございます", "どういたしまして", "ありがとうございます。ログイン画面を修正しました。"),
    "korean": ("감사합니다", "천만에요", "감사합니다. 로그인 화면을 수정했습니다."),
    "spanish": ("¡Muchas gracias!", "De nada", "Gracias. He corregido el error del formulario."),
    "french": ("Merci beaucoup !", "De rien", "Merci, le formulaire est corrigé."),
    "german": ("Vielen Dank!", "Gern geschehen", "Danke, der Fehler im Formular ist behoben."),
    "italian": ("Grazie mille!", "Prego", "Grazie, ho corretto il modulo."),
    "russian": ("Спасибо", "Не за что", "Спасибо, ошибка в форме исправлена."),
    "arabic": ("شكراً جزيلاً", "عفواً", "شكراً، تم إصلاح النموذج."),
    "hindi": ("धन्यवाद", "कोई बात नहीं", "धन्यवाद, फ़ॉर्म ठीक कर दिया गया है।"),
    "turkish": ("Teşekkürler", "Rica ederim", "Teşekkürler, form düzeltildi."),
    "polish": ("Dziękuję bardzo", "Nie ma za co", "Dziękuję, formularz jest poprawiony."),
    "emoji": ("👍", "🙏🙏", "👍 deployed to 3 servers"),
}
"""By language: thanks, welcome, and a report of work that begins politely."""
READ = calls("read_file", {"path": "collab/a.md"}, ToolReturned(value="# A"), go=True)
FAILS = calls("write_file", {"path": "/etc/x", "content": "y"}, Failed(reason="outside", fault="agent"), go=True)
DONE_ALREADY = writes("collab/a.md", "# A", go=True)
FLIP, FLOP = writes("collab/a.md", "tabs", go=True), writes("collab/a.md", "blanks", go=True)
COSTLY = Usage(input_tokens=40_000, output_tokens=10_000, money=0.25)


# fmt: off
GRAPH_LOOPS = [
    *(
        Loop(f"circle-of-{size}-{words}", ring(size), same(WORDS[words], go=True), 5 * size, "circle", progress=size)
        for size in range(2, 8)
        for words in WORDS
    ),
    *(
        Loop(f"self-loop-{words}", ring(1), same(WORDS[words], go=True), 5, "no_progress", progress=1)
        for words in WORDS
    ),
    *(
        Loop(f"circle-of-{k}-after-ten-turns-of-progress", ring(k), after(10, same(go=True)), 10 + 5 * k,
             "circle", progress=10 + k)
        for k in (2, 3, 5, 7)
    ),
    Loop("self-loop-after-ten-turns-of-progress", ring(1), after(10, same(go=True)), 15, "no_progress", progress=11),
    Loop("self-loop-that-rewrites-the-same-file", ring(1), lambda n: DONE_ALREADY, 5, "no_progress", progress=1),
    Loop("pair-that-rewrites-the-same-file", ring(2), lambda n: DONE_ALREADY, 10, "circle", progress=2),
    Loop("pair-that-edits-back-and-forth", ring(2), in_turn(FLIP, FLOP), 10, "circle", progress=2),
    Loop("one-agent-that-flips-and-flops-a-file", ring(1), in_turn(FLIP, FLOP), 10, "circle", progress=2),
    Loop("one-agent-that-flips-and-flops-a-decision", ring(1), in_turn((says(x=1),), (says(x=2),)), 10,
         "circle", progress=2),
    Loop("one-agent-that-goes-round-three-files", ring(1),
         in_turn(*(writes(f"collab/{name}.md", "# X", go=True) for name in "abc")), 15, "circle", progress=3),
    Loop("tool-calls-that-only-read", ring(2), lambda n: READ, 10, "circle", progress=2),
    Loop("tool-calls-that-read-something-else-each-time", ring(1),
         lambda n: calls("read_file", {"path": f"collab/{n}.md"}, ToolReturned(value=str(n)), go=True), 5,
         "no_progress", progress=1),
    Loop("tool-calls-that-fail", ring(2), lambda n: FAILS, 10, "circle", progress=2),
    Loop("tool-calls-that-fail-each-time-otherwise", ring(1),
         lambda n: calls("write_file", {"path": f"/{n}", "content": "y"}, Failed(reason="no", fault="agent"), go=True),
         5, "no_progress", progress=1),
    Loop("tool-calls-that-are-denied", ring(1),
         lambda n: (*calls("rm", {"n": n}, says(go=True))[:1], says(go=True)), 5, "no_progress", progress=1),
    Loop("files-of-a-recording-that-are-never-delivered", ring(1),
         lambda n: writes("collab/a.md", f"# {n}", Failed(reason="disk full"), recorded=True, go=True), 5,
         "no_progress", progress=1),
    Loop("patience-of-two", ring(2, guards={"patience": 2}), same(go=True), 4, "circle", progress=2),
    Loop("patience-of-ten", ring(2, guards={"patience": 10}), same(go=True), 20, "circle", progress=2),
    Loop("one-other-deed-only-puts-it-off", ring(1), after(5, same(go=True), until(5, same(go=True), counting(5))),
         10, "no_progress", progress=6),
    *(
        Loop(f"courtesy-in-{name}", ring(2), after(2, in_turn(*((says(words),) for words in pair[:2]))), 4,
             "courtesy", progress=2)
        for name, pair in COURTESIES.items()
    ),
    Loop("courtesy-from-the-very-start", ring(2), same(lambda n: "Thanks!"), 2, "courtesy"),
    Loop("courtesy-with-decisions-that-stay-the-same", ring(2), same(lambda n: "Thanks!", go=True), 4,
         "courtesy", progress=2),
    Loop("courtesy-to-oneself", ring(1), after(3, same(lambda n: "OK, noted.")), 5, "courtesy", progress=3),
    Loop("courtesy-of-one's-own", ring(2, guards={"phrases": ["hail the plan"]}),
         after(2, same(lambda n: "Hail the plan!")), 4, "courtesy", progress=2),
    Loop("courtesy-without-patience-for-circles", ring(2, guards={"patience": 0}), same(lambda n: "Thanks!"), 2,
         "courtesy"),
    Loop("courtesy-with-the-same-decisions-without-patience-for-circles", ring(2, guards={"patience": 0}),
         same(lambda n: "Thanks!", go=True), 4, "courtesy", progress=2),
    Loop("courtesy-after-the-work-is-done", ring(2), after(4, same(lambda n: "Thank you all!")), 6,
         "courtesy", progress=4),
    *(
        Loop(f"end-marker-{where}", ring(2, guards={"end_marker": MARKER}), after(3, in_turn((says(text),))), 4,
             "end_marker")
        for where, text in [("alone", MARKER), ("in-the-middle", f"So {MARKER} it is."), ("unspaced", f"好{MARKER}。")]
    ),
    Loop("budget-of-turns", ring(2, Limits(turns=7)), counting, 7, "budget.turns", "limit"),
    Loop("budget-of-calls", ring(2, Limits(calls=6)), counting, 6, "budget.calls", "limit"),
    Loop("budget-of-calls-within-a-turn", ring(1, Limits(calls=6)), lambda n: READ[:2], 6, "budget.calls", "limit"),
    Loop("budget-of-tokens", ring(2, Limits(tokens=200_000)), lambda n: (says(usage=COSTLY, step=n),), 4,
         "budget.tokens", "limit"),
    Loop("budget-of-money", ring(2, Limits(money=1.0)), lambda n: (says(usage=COSTLY, step=n),), 4,
         "budget.money", "limit"),
    Loop("budget-of-seconds", ring(2, Limits(seconds=10)), counting, 10, "budget.seconds", "limit"),
    Loop("deadline-during-a-turn", ring(2, Limits(seconds=3)), after(2, lambda n: (TimerFired(),)), 3,
         "budget.seconds", "limit"),
    Loop("most-turns", ring(2, max_turns=10), counting, 10, "max_turns", "limit"),
    Loop("most-turns-before-the-circle-is-plain", ring(2, max_turns=10), same(go=True), 10,
         "max_turns", "limit"),
    Loop("patience-of-none-goes-on-to-the-most-turns", ring(2, guards={"patience": 0}), same(go=True), 100,
         "max_turns", "limit"),
    Loop("circle-of-eight-goes-on-to-the-most-turns", ring(8), same(go=True), 100, "max_turns", "limit"),
    Loop("children-of-children", lambda: given(ErrandStyle(), Errands(((StartRun("w"),),)), depth=8), counting, 0,
         "depth", "limit"),
]
# fmt: on


# Checking


def verdicts(story: Given) -> list[GuardTripped]:
    return [record.event for record in story.records if isinstance(record.event, GuardTripped)]


def stopped(loop: Loop, settle: Settle = nothing) -> tuple[Given, GuardTripped]:
    """Play a loop and check what holds for all of them."""
    story = loop.begin()
    settle(story)
    if loop.rounds:
        assert not over(story)
        assert play(story, loop.goes, loop.rounds + 5, settle) == loop.rounds
    assert story.run is not None and story.run.ended is not None
    assert story.run.ended.outcome == loop.outcome
    (verdict,) = verdicts(story)
    assert verdict.guard == loop.guard
    assert verdict.text == story.run.ended.because
    return story, verdict


def evidence(story: Given, verdict: GuardTripped) -> list[Any]:
    before = next(record.number for record in story.records if record.event is verdict)
    assert all(1 <= number < before for number in verdict.evidence)
    assert list(verdict.evidence) == sorted(set(verdict.evidence))
    return [story.records[number - 1].event for number in verdict.evidence]


def completes(healthy: Healthy, settle: Settle = nothing) -> Given:
    story = healthy.begin()
    assert play(story, healthy.goes, healthy.rounds + 5, settle) == healthy.rounds
    assert story.run is not None and story.run.ended is not None
    assert story.run.ended.outcome == "completed"
    assert verdicts(story) == []
    return story
