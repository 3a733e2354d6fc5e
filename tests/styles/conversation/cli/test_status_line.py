"""The one line that says where a session is."""

from msgspec.structs import replace

from ripstop.styles.conversation.cli.terminal_chat import status_line
from ripstop.styles.conversation.feed import SessionNow

NOW = SessionNow(
    name="Mina",
    status="processing",
    in_pass=True,
    closed=False,
    asks=False,
    taken_by="",
    handed_to="support",
    timers=(),
    length=5,
    ended="",
)


def test_names_the_provider_that_an_answer_waits_for() -> None:
    assert status_line(NOW, 0, 3) == ("Mina is at work … 3.0 s", "cyan")
    waits = ("Mina waits for openai (599 s), which takes no more calls now", "yellow")
    assert status_line(NOW, 0, 3, held={"openai": 599}) == waits
    assert status_line(NOW, 0, 3, "price_list", held={"openai": 599})[0] == "Mina is using price_list … 3.0 s"
    idle = replace(NOW, in_pass=False, status="ready")
    assert status_line(idle, 0, 3, held={"openai": 599}) == ("ready", "dim")
