"""A definition lists tools by name, or all tools of a server as `git__*`."""

import pytest

from ripstop.kernel.prompt import permits


@pytest.mark.parametrize(
    ("tools", "name", "allowed"),
    [
        (("git__status",), "git__status", True),
        (("git__status",), "git__log", False),
        (("git__*",), "git__log", True),
        (("git__*",), "github__log", False),
        (("git__*",), "git_log", False),
        (("git__*",), "write_file", False),
        (("*",), "git__log", False),
        (("__*",), "__log", False),
        (("git*",), "git__log", False),
        ((), "git__log", False),
    ],
)
def test_a_star_stands_for_the_tools_of_one_server_only(tools: tuple[str, ...], name: str, allowed: bool) -> None:
    assert permits(tools, name) is allowed
