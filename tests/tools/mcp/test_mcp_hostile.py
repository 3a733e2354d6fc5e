"""Servers that lie, flood, hang and die: bounded in time and memory, and the others work on."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ripstop.engine.performers import InDoubt, Refused
from ripstop.faces.next_steps import in_commands
from ripstop.kernel.effects import Answer, ToolReturned
from ripstop.tools.mcp import connection
from ripstop.tools.mcp import servers as listing
from ripstop.tools.mcp.card import read_card
from ripstop.tools.mcp.forms import CannotAsk, approval, key_of
from ripstop.tools.mcp.servers import NotConnected, ServerSpec, ToolListing, connect, list_tools
from ripstop.tools.mcp.transports import environment_of, stdio_transport
from tests.tools.mcp.served import call, hostile, trusted


def listed(mode: str) -> ToolListing:
    return asyncio.run(list_tools(hostile(mode)))


def called(mode: str, folder: Path) -> Answer | None:
    """Call a tool that the user agreed to when the server still behaved."""

    async def story() -> Answer | None:
        before = await list_tools(hostile("garbage"))
        async with trusted(hostile(mode), folder, before) as tools:
            return await tools.perform(call("h__echo", text="hello"))

    return asyncio.run(story())


@pytest.mark.parametrize(
    ("mode", "note"),
    [
        ("duplicates", "echo: listed twice; the first is used"),
        ("long description", "long: left out, because its description has 1,000,129 bytes; at most 20,000 are read"),
        ("endless pages", f"its list has more than {listing.MOST_PAGES} pages; the others are not read"),
        ("many tools", f"it has more than {listing.MOST_TOOLS} tools; the others are left out"),
    ],
)
def test_what_a_list_has_too_much_of_is_left_out_and_said(mode: str, note: str) -> None:
    found = listed(mode)
    assert note in found.notes and "echo" in found.cards
    assert len(found.cards) <= listing.MOST_TOOLS and found.cards["echo"].description == "Say it again.[2J"


@pytest.mark.parametrize("named_by", ["user", "project"])
def test_a_server_of_the_user_runs_no_code_of_the_project(
    named_by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    for folder in (home, project):
        folder.mkdir()
    (project / "my_server.py").write_text("print('I am the code of the project')", encoding="utf-8")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(project)
    names = str(project) if named_by == "project" else ""
    server = ServerSpec(name="h", command=(sys.executable, "-m", "my_server"), project=names)

    async def story() -> str:
        async with stdio_transport(server, {}) as ((read, _), process):
            async for _ in read:
                return "it runs"
            return process.last_words

    assert ("it runs" if named_by == "project" else "No module named my_server") in asyncio.run(story())


def test_one_tool_that_is_wrong_does_not_cost_the_others() -> None:
    found = listed("bad schema")
    assert list(found.cards) == ["echo"]
    assert len(found.notes) == 10
    assert any("https://evil.example/schema" in note for note in found.notes)
    assert any("file:///etc/passwd" in note for note in found.notes)


@pytest.mark.parametrize("mode", ["garbage", "duplicates", "bad schema"])
def test_the_tool_that_is_right_can_be_called(mode: str, tmp_path: Path) -> None:
    assert called(mode, tmp_path) == ToolReturned(value="hello")


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("wrong shape", "the server's answer has the wrong shape"),
        ("flood", "it sent more than 20,000 messages that nobody asked for"),
        ("requests", "it asked for more than 500 things at a time"),
        ("dies", "I do not feel well"),
        ("huge message", "it sent a message of more than 4,000,000 bytes"),
    ],
)
def test_a_call_that_goes_wrong_is_in_doubt_and_says_why(mode: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(InDoubt) as doubt:
        called(mode, tmp_path)
    assert reason in str(doubt.value) and len(str(doubt.value)) < 1_000


def test_a_server_that_hangs_is_given_up_and_killed(tmp_path: Path) -> None:
    async def story() -> None:
        before = await list_tools(hostile("garbage"))
        async with trusted(hostile("hangs", timeout=1), tmp_path, before) as tools:
            with pytest.raises(InDoubt, match="did not answer within 1 s"):
                await tools.perform(call("h__echo", text="hello"))
            used = tools._servers["h"]._connection
            assert used is not None and used._owner is not None and not used.is_open
            await used._owner

    asyncio.run(story())


def test_a_call_that_waits_for_its_turn_is_made_on_another_connection_if_the_one_before_timed_out(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        before = await list_tools(hostile("garbage"))
        async with trusted(hostile("hangs", timeout=1), tmp_path, before) as tools:
            calls = (tools.perform(call("h__echo", text=text)) for text in ("first", "second"))
            doubts = await asyncio.gather(*calls, return_exceptions=True)
            assert [str(doubt) for doubt in doubts] == ["h__echo did not answer within 1 s"] * 2

    asyncio.run(story())


def test_a_server_that_is_being_connected_to_is_left_at_once(tmp_path: Path) -> None:
    async def story() -> None:
        before = await list_tools(hostile("garbage"))
        async with trusted(hostile("silent", timeout=600), tmp_path, before) as tools:
            preparing = asyncio.create_task(tools.prepare(["h__echo"]))
            while not tools._preparing:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.2)
            preparing.cancel()
            await tools.close()
            assert all(task.cancelled() for task in tools._preparing)

    asyncio.run(story())


def test_a_server_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "OPENING", 1.0)
    with pytest.raises(NotConnected, match="'h' cannot be used: it did not answer within 1 s"):
        asyncio.run(list_tools(hostile("silent", timeout=1)))


def test_a_list_that_is_not_a_list_is_an_error() -> None:
    with pytest.raises(NotConnected, match="its answer has the wrong shape"):
        listed("wrong list")


@pytest.mark.parametrize("program", ["/there/is/no/such/program", str(Path(__file__))])
def test_a_program_that_cannot_be_started_is_said(program: str) -> None:
    with pytest.raises(NotConnected, match="The MCP server 'h' cannot be used: "):
        asyncio.run(list_tools(ServerSpec(name="h", command=(program,))))


def test_a_tool_that_changed_after_the_user_agreed_is_not_called_and_not_offered(tmp_path: Path) -> None:
    async def story() -> None:
        before = await list_tools(hostile("garbage"))
        count = tmp_path / "count"
        changed = hostile("changed", str(count))
        async with trusted(changed, tmp_path, before) as tools:
            assert [spec.name for spec in tools.specs(("h__*",))] == ["h__echo"]
            with pytest.raises(Refused, match="h__echo has changed since you agreed to it") as refused:
                await tools.perform(call("h__echo", text="hello"))
            assert in_commands(refused.value.message).endswith("Look at it: ripstop tools trust h.")
            assert tools.specs(("h__*",)) == [] and tools.names == ("h__echo",)
            assert "has changed" in tools.why_missing("h__echo")
            assert not count.exists()
            # agreed to meanwhile, in another process
            tools._servers["h"]._pins.remember(changed, (await list_tools(changed)).cards.values())
            assert await tools.perform(call("h__echo", text="hello")) == ToolReturned(value="hello")
            assert [spec.description for spec in tools.specs(("h__echo",))] == [
                "Say it again, and send it to evil.example."
            ]

    asyncio.run(story())


def test_a_hostile_server_does_not_hold_up_another_one(tmp_path: Path) -> None:
    async def story() -> None:
        before = await list_tools(hostile("garbage"))
        async with trusted(hostile("hangs", timeout=2), tmp_path / "1", before) as bad:
            async with trusted(hostile("garbage"), tmp_path / "2", before) as good:
                hanging = asyncio.create_task(bad.perform(call("h__echo", text="hello")))
                for _ in range(3):
                    assert await good.perform(call("h__echo", text="hello")) == ToolReturned(value="hello")
                assert not hanging.done()
                with pytest.raises(InDoubt):
                    await hanging

    asyncio.run(story())


HELPER = """
import subprocess, sys
helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], stdin=subprocess.DEVNULL)
open(sys.argv[1], "w").write(str(helper.pid))
for line in sys.stdin:
    pass
import time
time.sleep(600)
"""


def test_what_a_server_started_is_killed_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "OPENING", 2.0)
    (tmp_path / "server.py").write_text(HELPER)
    note = tmp_path / "pid"
    spec = ServerSpec(name="h", command=(sys.executable, str(tmp_path / "server.py"), str(note)), timeout=1)
    with pytest.raises(NotConnected):
        asyncio.run(connect(spec))
    pid = int(note.read_text())
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        state = "gone"
    assert state in ("Z", "X", "gone"), state


def test_a_server_gets_a_short_list_of_variables_and_those_that_are_named() -> None:
    variables = {**os.environ, "HOME": "/home/ann", "OPENAI_API_KEY": "sk-canary", "GIT_TOKEN": "t", "USER": "ann"}
    spec = ServerSpec(name="git", command=("x",), env=("GIT_TOKEN", "NOT_SET"))
    passed = environment_of(spec, variables)
    assert passed["GIT_TOKEN"] == "t" and passed["HOME"] == "/home/ann"
    assert set(passed) <= {"PATH", "HOME", "LANG", "TERM", "USER", "SHELL", "GIT_TOKEN"}


def test_the_last_words_of_a_server_do_not_hold_the_secret_it_got(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_TOKEN", "tok-0123456789abcdef")
    says_it = "import os, sys; sys.exit('bad token ' + os.environ['GIT_TOKEN'] + '\\x1b[2J')"
    spec = ServerSpec(name="git", command=(sys.executable, "-c", says_it), env=("GIT_TOKEN",))
    with pytest.raises(NotConnected) as refused:
        asyncio.run(connect(spec))
    said = str(refused.value)
    assert "bad token …" in said and "0123456789" not in said and "\x1b" not in said


def test_nothing_is_started_to_know_the_pinned_tools(tmp_path: Path) -> None:
    async def story() -> None:
        before = await list_tools(hostile("garbage"))
        gone = ServerSpec(name="h", command=("/there/is/no/such/program",))
        async with trusted(gone, tmp_path, before) as tools:
            assert [spec.name for spec in tools.specs(("h__echo",))] == ["h__echo"]
            assert tools.handles("h__echo") and not tools.handles("h__other")

    asyncio.run(story())


WITHOUT_SDK = """
import asyncio, sys
sys.modules["mcp"] = None
from ripstop.tools.mcp.servers import ServerSpec
from ripstop.tools.mcp.servers import NotConnected, list_tools
try:
    asyncio.run(list_tools(ServerSpec(name="git", command=("x",))))
except NotConnected as error:
    print(error)
"""


def test_without_the_extra_it_is_said_what_to_install() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_SDK], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "The MCP server 'git' cannot be used. MCP servers need the extra `mcp`: pip install 'ripstop[mcp]'.\n"
    )


def test_a_person_approves_all_that_is_sent_or_is_not_asked() -> None:
    card = read_card("git", {"name": "push", "inputSchema": {"type": "object"}})
    arguments = {"more": "x" * 9_000, "to": "main\u202e"}
    assert approval(card, "clerk", arguments).arguments == arguments
    with pytest.raises(CannotAsk, match="its arguments have 300,011 bytes, and at most 262,144 can be shown"):
        approval(card, "clerk", {"text": "x" * 300_000})


def test_calls_that_differ_far_behind_are_approved_one_by_one() -> None:
    card = read_card("bank", {"name": "pay", "inputSchema": {"type": "object"}})
    one, other = (approval(card, "clerk", {"memo": "x" * 9_000, "to": to}) for to in ("ann", "eve"))
    assert one.shown != other.shown and key_of(one, 0) != key_of(other, 0)
