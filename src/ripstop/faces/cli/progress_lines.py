"""What a person sees while several runs are worked on: one line for every change."""

from ripstop.kernel.effects import AskAgent, AskPerson
from ripstop.kernel.events import Asked, GuardTripped, Warned
from ripstop.runtime.live import Appended, Began, LiveEvent, RateLimited, Retrying

from .terminal import say


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
