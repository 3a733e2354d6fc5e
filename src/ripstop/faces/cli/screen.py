"""What a person sees while a run is under way: one line for every turn, and a live line below them.

In a terminal the live line shows whose turn it is, for how long, and how many tokens came. Where
there is no terminal there are plain lines only. All of it goes to stderr except the result.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.status import Status

from ripstop.app.settings.default_limits import describe_limits, how_to_raise
from ripstop.engine.live import Appended, Began, LiveEvent, RateLimited, Retrying, Token
from ripstop.kernel.desk_kinds import DOUBTED
from ripstop.kernel.effects import AgentReplied, AskAgent, AskPerson, CallTool, Failed, StartRun
from ripstop.kernel.events import Answered, Asked, Ended, GuardTripped, Record, TurnResult, Warned, Withdrawn
from ripstop.kernel.questions import kind_of
from ripstop.kernel.run import SECOND
from ripstop.kernel.style import Picture
from ripstop.text.plurals import count

from .blocks import LABEL, print_indented, print_labelled, print_line
from .signals import STOPPING, interruption, undisturbed
from .terminal import Part, console_for, line_of, live_line, no_live_lines, say, text_of
from .words import (
    COLOURS,
    answer_command,
    choices_line,
    command_for,
    first_line,
    outage_words,
    refused_calls,
    seconds,
    shown_path,
    spent_words,
)

if TYPE_CHECKING:
    from rich.text import Text

    from ripstop.app.application import App
    from ripstop.engine.engine import View
    from ripstop.kernel.run import Run


# What the live line shows of a call: for how long it has been under way, and the last words of its reply so far.


LONGEST_TAIL = 48


class UnfinishedWords:
    """The last words of a reply that is still coming, of the latest attempt only."""

    def __init__(self, make_reader: Callable[[], Callable[[str], str]]) -> None:
        self._make_reader = make_reader
        self.tokens = 0
        """Pieces of the latest attempt."""
        self._attempt = 0
        self._last = ""
        self._words = make_reader()

    def take(self, token: Token) -> None:
        """Take a piece in. A new attempt replaces what the broken one showed; a late piece of that one is dropped."""
        if token.attempt < self._attempt:
            return
        if token.attempt > self._attempt:
            self._attempt, self.tokens, self._last, self._words = token.attempt, 0, "", self._make_reader()
        self.tokens += 1
        self._last = (self._last + self._words(token.text))[-4 * LONGEST_TAIL :]

    @property
    def tail(self) -> str:
        """The last words for people, on one line."""
        return " ".join(self._last.split())[-LONGEST_TAIL:]


class CallUnderWay:
    """The live line of a call. rich renders it several times a second, so its seconds go on between two pieces."""

    def __init__(self, head: list[Part], began: float, reply: UnfinishedWords | None) -> None:
        self._head = head
        self._began = began
        self._spent = f"{count(reply.tokens, 'token')}, " if reply and reply.tokens else ""
        self._tail = reply.tail if reply else ""

    def __rich__(self) -> "Text":
        effort = f"{self._spent}{seconds(time.monotonic() - self._began)}  {self._tail}"
        return line_of(*self._head, (effort.rstrip(), "dim"))


# What a person sees while several runs are worked on: one line for every change.


class ProgressLines:
    """Prints to stderr, because with `--json` stdout is for the document at the end."""

    def __init__(self) -> None:
        self._shown: dict[str, tuple[str, str]] = {}
        self.stopped = False
        """A guard has stopped something."""

    def name(self, run_id: str) -> str:
        """What a run is called in its lines; empty if it is not shown."""
        return run_id

    def see(self, event: LiveEvent) -> None:
        name = self.name(event.run_id)
        if not name:
            return
        match event:
            case Began(command=AskAgent(agent=agent)):
                self.line(name, f"{agent} is at work")
            case Retrying(reason=reason, seconds=wait):
                self.line(name, f"again in {wait:.1f} s: {reason}", "yellow")
            case RateLimited(provider=provider, seconds=wait):
                self.line(name, f"waits {wait:.1f} s for the rate limit of {provider}", "dim")
            case Appended(records=records, picture=picture):
                for record in records:
                    self._tell(name, record.event)
                now = (picture.where, picture.whose_turn)
                if self._shown.get(name) != now:
                    self._shown[name] = now
                    whose = f", {picture.whose_turn}'s" if picture.whose_turn else ""
                    self.line(name, f"{picture.where}{whose} ({picture.progress})", "green")

    def _tell(self, name: str, event: object) -> None:
        match event:
            case Warned(text=text):
                self.line(name, f"warning: {text}", "yellow")
            case GuardTripped(guard=guard, text=text):
                self.stopped = True
                self.line(name, f"guard {guard}: {text}", "yellow")
            case Asked(command=AskPerson(question=question)):
                self.line(name, f"a person is asked: {question}   → ripstop desk", "magenta")

    def line(self, name: str, text: str, colour: str = "") -> None:
        say((name, "bold"), "  ", (text, colour), err=True)


WARNINGS_SHOWN = 10
"""At the end of a run; `--json` lists all of them."""


class Screen:
    def __init__(self, app: "App", quiet: bool) -> None:
        self._app = app
        self._quiet = quiet
        self._out = console_for()
        self._err = console_for(stderr=True)
        self._status: Status | None = None
        self._run_id = ""
        self._before: list[LiveEvent] = []
        """What happened before the run had a name here, or while nothing could be shown; shown then."""
        self._is_held = False
        # of the run and of its children, whose records have the same numbers: by run and number
        self._began: dict[tuple[str, int], tuple[float, str]] = {}
        self._replies: dict[tuple[str, int], UnfinishedWords] = {}
        """What has come of the replies to open commands."""
        self._places: dict[tuple[str, int], str] = {}
        self._withdrawn: set[tuple[str, int]] = set()
        self._spoken: dict[str, list[tuple[list[Part], str]]] = {}
        """By run, the replies of the turn under way: the line to print before them, and their text."""
        self._documents: dict[str, str] = {}
        """By run, what a turn came to that was shown last. The next one has not come to that."""
        self._wait_told = False

    @contextmanager
    def following(self) -> Iterator[None]:
        if self._quiet:
            yield
            return
        stop = self._app.live.watch(self._see)
        try:
            if self._err.is_terminal:
                with live_line(self._err, text_of("starting …")) as self._status:
                    yield
            else:
                yield
        finally:
            self._status = None
            stop()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Show nothing while a person is asked or has an editor open. What happens meanwhile is shown afterwards."""
        self._is_held = True
        try:
            with no_live_lines():
                yield
        finally:
            self._is_held = False
            self._show_before()

    def begins(self, view: "View", is_new: bool, is_over: bool) -> None:
        """Show which run this is and, unless it was over before, its limits: it may have failed since it started."""
        run_id = self._run_id = view.run.id
        for number, opened in view.run.open.items():
            if isinstance(opened.command, AskAgent):  # asked before we looked on
                self._places.setdefault((run_id, number), view.picture.where)
        if not self._quiet:
            print_line(self._err, (run_id, "bold"), "  ", (f"({self._app.settings.store})", "dim"))
            limits = describe_limits(view.run.limits)
            if limits and not is_over:
                print_line(self._err, (f"limits: {limits}; {how_to_raise(view.run.limits, is_new)}", "dim"))
        self._show_before()

    def _show_before(self) -> None:
        before, self._before = self._before, []
        for event in before:
            self._see(event)

    def _mine(self, run_id: str) -> bool:
        return run_id == self._run_id or run_id.startswith(f"{self._run_id}.")

    def _see(self, event: LiveEvent) -> None:
        if not self._run_id or self._is_held:
            if not (self._is_held and isinstance(event, Token)):  # as many as an hour brings
                self._before.append(event)
            return
        if not self._mine(event.run_id):
            return
        match event:
            case Began(run_id=run_id, number=number, command=command):
                self._began[run_id, number] = (time.monotonic(), _who(command))
                self._replies.pop((run_id, number), None)
                self._now(run_id, number)
            case Token(run_id=run_id, number=number):
                self._reply(event).take(event)
                self._now(run_id, number)
            case Retrying(run_id=run_id, reason=reason, seconds=wait):
                self._show_spoken(run_id, "")  # what was said before comes first
                self._note(run_id, f"again in {wait:.1f} s:", "yellow", first_line(reason))
            case RateLimited(run_id=run_id, provider=provider, seconds=wait):
                self._wait(run_id, f"waits {wait:.1f} s for the rate limit of {provider}")
            case Appended():
                self._take_step(event)

    def _take_step(self, step: Appended) -> None:
        run_id, turn_is_over = step.run_id, any(_ends_turn(record.event) for record in step.records)
        has_result = any(isinstance(record.event, TurnResult) for record in step.records)
        for record in step.records:
            if self._is_late(run_id, record.event):
                continue
            if _is_remark(record.event):  # on what was said, so that comes first
                is_whole = turn_is_over or has_result or _follows_turn(record.event)
                self._show_spoken(run_id, step.picture.document if is_whole else "")
            self._tell(run_id, record, step.picture)
        if turn_is_over:
            self._show_spoken(run_id, step.picture.document)

    def _is_late(self, run_id: str, event: object) -> bool:
        """Whether this is the end of a call that the run had withdrawn; that it came to nothing is not a failure."""
        if isinstance(event, Withdrawn):
            self._withdrawn.add((run_id, event.number))
        return (
            isinstance(event, Answered) and isinstance(event.answer, Failed) and (run_id, event.to) in self._withdrawn
        )

    def _reply(self, token: Token) -> UnfinishedWords:
        """What has come of the reply that a piece belongs to."""
        key = token.run_id, token.number
        if key not in self._replies:
            run = self._app.engine.known(token.run_id)
            assert run is not None  # this process is at work on it
            self._replies[key] = UnfinishedWords(self._app.engine.style(run).view.word_reader)
        return self._replies[key]

    def _child(self, run_id: str) -> str:
        """What the lines of a child begin with; nothing for those of the run itself."""
        return "" if run_id == self._run_id else f"{run_id} "

    def _now(self, run_id: str, number: int) -> None:
        if self._status is None:
            return
        began, who = self._began[run_id, number]
        head: list[Part] = [(self._child(run_id), "dim"), *self._speaker(run_id, number, who), "  "]
        self._status.update(CallUnderWay(head, began, self._replies.get((run_id, number))))

    def _wait(self, run_id: str, text: str) -> None:
        """Say what a run waits for: on the live line, where there is one; it would fill a log with such lines."""
        if self._status is not None:
            self._status.update(text_of(f"{self._child(run_id)}{text}"))
        elif not self._wait_told:
            self._wait_told = True
            self._note(run_id, "rate limit:", "dim", text)

    def _speaker(self, run_id: str, number: int, who: str) -> list[Part]:
        """Who is asked, after where the run was then, unless that is the agent itself."""
        place = self._places.get((run_id, number), "")
        return [(place, "bold"), f" {who}"] if place not in ("", who) else [who]

    def _tell(self, run_id: str, record: Record, picture: Picture) -> None:
        match record.event:
            case Asked(command=AskAgent()):
                self._places[run_id, record.number] = picture.where
            case Asked(command=AskPerson(question=question)):
                self._note(run_id, "a person is asked:", "magenta", question)
            case Answered(to=to, answer=AgentReplied() as reply, attempt=attempt):
                began, who = self._began.pop((run_id, to), (time.monotonic(), "agent"))
                self._replies.pop((run_id, to), None)
                again = f", attempt {attempt}" if attempt > 1 else ""
                cost = f"{count(reply.usage.tokens, 'token')}, " if reply.usage.tokens else ""
                effort = f"{cost}{seconds(time.monotonic() - began)}{again}"
                speaker, child = self._speaker(run_id, to, who), (self._child(run_id), "dim")
                self._places.pop((run_id, to), None)
                head: list[Part] = ["  ", ("●", "green"), " ", child, *speaker, "  ", (effort, "dim")]
                tools = ", ".join(call.tool for call in reply.calls)
                said = reply.text.strip() or (f"calls {tools}" if tools else "")
                self._spoken.setdefault(run_id, []).append((head, said))
            case Answered(to=to, answer=Failed(reason=reason)):
                _, who = self._began.pop((run_id, to), (0.0, ""))
                self._note(run_id, "●", "red", f"{f'{who}: ' if who else ''}{first_line(reason)}")
            case Warned(text=text):
                self._note(run_id, "warning:", "yellow", text)
            case GuardTripped(guard=guard, text=text):
                self._note(run_id, f"guard {guard}:", "yellow", text)

    def _note(self, run_id: str, label: str, colour: str, text: str) -> None:
        print_indented(self._err, 2, (self._child(run_id), "dim"), (label, colour), f" {text}")

    def _show_spoken(self, run_id: str, document: str) -> None:
        """Show what was said in the run's turn; `document`: what it came to, if that is known by now."""
        spoken = self._spoken.pop(run_id, [])
        if spoken and document:
            before, self._documents[run_id] = self._documents.get(run_id), document
            if document == before:
                head, text = spoken[-1]
                spoken[-1], document = (head, self._words(run_id, text)), ""
        for index, (head, text) in enumerate(spoken):
            last = index == len(spoken) - 1
            said = document if last and document else text
            print_line(self._err, *head)
            if said:
                print_indented(self._err, 4, first_line(said, 160))

    def _words(self, run_id: str, text: str) -> str:
        """The words for people in a reply."""
        run = self._app.engine.known(run_id)
        return (self._app.engine.style(run).view.word_reader()(text).strip() if run else "") or text

    def stopping(self) -> None:
        if self._status:
            self._status.update(text_of(STOPPING))

    def interrupted(self, run_id: str) -> None:
        self._err.print()
        with undisturbed():
            print_line(self._err, interruption(f"{self._command()} resume {run_id}"))

    def result(self, view: "View", result: dict[str, Any]) -> None:
        run_id, usage, out = result["run"], result["usage"], self._out
        if not result.get("resumed", True):
            print_line(self._err, f"{run_id} had already ended, so nothing was resumed.")
        out.print()
        outcome = result["outcome"]
        print_labelled(out, f"{outcome} ", _because(result), f"{COLOURS[outcome]} bold")
        if result["path"]:
            print_labelled(out, "path", shown_path(result["path"]))
        turns = count(result["turns"], "turn")
        print_labelled(out, "spent", f"{turns}, {spent_words(usage, refused_calls(view.run))}{_time_at_work(view.run)}")
        if view.picture.document:
            print_labelled(out, "last", first_line(view.picture.document, 300))
        for warning in result["warnings"][:WARNINGS_SHOWN]:
            print_labelled(out, "warning ", warning, "yellow")
        if len(result["warnings"]) > WARNINGS_SHOWN:
            more = count(len(result["warnings"]) - WARNINGS_SHOWN, "more warning")
            print_labelled(out, "warning ", f"{more}: {self._command()} log {run_id}", "yellow")
        for question in result["waiting"]:
            print_labelled(out, "waits", question["question"], "magenta")
            if outage := question.get("outage"):
                self._outage(outage)
                continue
            choices = question["choices"]
            for line in (f"{self._command()} {answer_command(question['id'], choices)}", *choices_line(choices)):
                out.print(line_of(f"        {line}"))
        ways = result.get("ways_on") or result.get("guard", {}).get("ways_on", ())
        for way in ways if not result["waiting"] else ():
            out.print(line_of(f"next    {way.replace('ripstop', self._command(), 1)}"))
        self._closer(run_id)

    def _outage(self, outage: dict[str, Any]) -> None:
        """How often a call was refused, since when, and what can be done."""
        known = outage_words(outage)
        self._out.print(line_of(f"        {known}"))
        self._out.print(line_of(f"next    {self._command()} retry {outage['root']}"))

    def _closer(self, run_id: str) -> None:
        """The commands that show more: on one line, or on a line each where a terminal would break one of them."""
        log, why = (f"{self._command()} {verb} {run_id}" for verb in ("log", "why"))
        both = f"{log}   ·   {why}"
        fits = not self._out.is_terminal or LABEL + len(both) <= self._out.width
        for line in (f"closer  {both}",) if fits else (f"closer  {log}", f"        {why}"):
            self._out.print(line_of((line, "dim")))

    def _command(self) -> str:
        return command_for(self._app.settings.store)


def _time_at_work(run: "Run[Any]") -> str:
    """How long a run has been at work, in all processes; it is counted only where that is limited."""
    return "" if run.limits.seconds is None else f", {seconds(run.work.counted / SECOND)} at work"


def _because(result: dict[str, Any]) -> str:
    """Why a run ended or, if it waits, for what."""
    waiting = len(result["waiting"])
    if "needs" in result:
        needs = (one.partition(":") for one in result["needs"])
        return f"it waits for {' and '.join(f'the {kind} {name!r}' for kind, _, name in needs)}"
    if result["outcome"] == "paused" and all("outage" in question for question in result["waiting"]):
        return "by a model server that refuses a call"
    if waiting:
        return result["because"] or f"for {'an answer' if waiting == 1 else f'{waiting} answers'}"
    return result["because"] or (f"for {' and '.join(result['waits_for'])}" if "waits_for" in result else "")


def _is_remark(event: object) -> bool:
    """Whether it is about what was said: a warning, a guard's verdict, a call that failed, a question to a person."""
    has_failed = isinstance(event, Answered) and isinstance(event.answer, Failed)
    asks = isinstance(event, Asked) and isinstance(event.command, AskPerson)
    return has_failed or asks or isinstance(event, Warned | GuardTripped)


def _follows_turn(event: object) -> bool:
    """Whether a remark is made only when a turn has come to something. A call can be in doubt in the middle of one."""
    if isinstance(event, Asked) and isinstance(event.command, AskPerson):
        return kind_of(event.command) != DOUBTED
    return isinstance(event, GuardTripped)


def _ends_turn(event: object) -> bool:
    """A new turn begins, or the run is over: the turn before it has ended."""
    if isinstance(event, Asked):
        begins = isinstance(event.command, AskAgent) and event.command.continues is None
        return begins or isinstance(event.command, StartRun)
    return isinstance(event, Ended)


def _who(command: object) -> str:
    match command:
        case AskAgent(agent=agent):
            return agent
        case CallTool(tool=tool, agent=agent):
            return f"{agent} · {tool}" if agent else tool
    return type(command).__name__
