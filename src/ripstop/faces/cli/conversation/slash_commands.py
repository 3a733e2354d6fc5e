"""What a line that is typed into a chat is: a command, or words for the other side.

A line that begins with `/` and a letter is a command. One that is not known is refused, because a slip such as
`/relase` must not reach a customer. `//` sends what follows with one `/`.
"""

from collections.abc import Collection

from ripstop.kernel.errors import UsageError

QUIT, RELEASE, TAKE = "/quit", "/release", "/take"


def command_in(line: str, commands: Collection[str]) -> str:
    """The command that a line is; empty if it is words. Raises `UsageError` for one that is not known."""
    text = line.strip()
    if text in commands:
        return text
    if text[:1] != "/" or not text[1:2].isalpha():
        return ""
    first = text.split()[0]
    if first in commands:
        raise UsageError(f"{first} is typed alone. Send your words before it.")
    raise UsageError(
        f"{first[:40]} is not a command here; there are: {', '.join(commands)}. To send it as a message, begin with //."
    )


def words_in(line: str) -> str:
    """The words of a line that is not a command."""
    return line.replace("//", "/", 1) if line.lstrip().startswith("//") else line
