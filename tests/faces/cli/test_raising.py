"""How a limit is raised on the command line, and how that is advised."""

from ripstop.faces.cli.run import _amounts
from ripstop.faces.cli.words import way_command


def test_the_advised_raise_says_that_it_is_by_so_much_more_and_is_read_as_that() -> None:
    advised = way_command("poem-aaaaa", {"action": "resume", "raise": {"calls": 1, "seconds": 0.5}})
    assert advised == "ripstop resume poem-aaaaa --raise calls=+1 --raise seconds=+0.5"
    typed = tuple(word for word in advised.split() if "=" in word)
    assert _amounts(typed) == _amounts(("calls=1", "seconds=0.5")) == {"calls": 1, "seconds": 0.5}
