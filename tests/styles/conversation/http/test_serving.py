"""`ripstop serve`: a server and a worker in one process, that tells where its token is and stops in order."""

import asyncio
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from ripstop.app.application import App
from ripstop.app.settings.settings_file import Settings, read_settings
from ripstop.app.stores import open_engine
from ripstop.faces.http import tokens
from ripstop.faces.http.door import AllowedHosts, Door, TokenAdmission
from ripstop.kernel.errors import DefinitionError, UsageError
from ripstop.kernel.events import Heard
from ripstop.styles.conversation.http.application import open_face
from ripstop.testing.commands import command
from tests.styles.conversation.http.served_bot import TOKEN, write_bot
from tests.styles.conversation.http.served_process import ServedProcess, may_reply, prepare, until


def heard(folder: Path) -> list[str]:
    async def read() -> list[str]:
        async with open_engine(Settings(store=f"sqlite:{folder}/.ripstop/journal.db")) as engine:
            records = await engine.journal.read("chat:shop:ann")
            return [record.event.id for record in records if isinstance(record.event, Heard)]

    return asyncio.run(read())


@pytest.mark.long
def test_serves_and_works_with_a_private_token_and_stops_in_order(tmp_path: Path) -> None:
    prepare(tmp_path)
    may_reply(tmp_path)
    with ServedProcess(tmp_path) as server:
        token = Path(server.said["token"])
        assert server.said["workflows"] == ["shop"]
        assert token.is_absolute() and not token.is_relative_to(tmp_path), "it is in the state folder of the user"
        assert stat.S_IMODE(token.stat().st_mode) == 0o600
        assert httpx2.get(f"{server.said['address']}/healthz").status_code == 401
        assert server.say("hi", "m1", wait=30).json()["messages"][-1]["text"] == "hello"
        with server.client.stream("GET", "/conversations/shop/ann/events") as stream:
            assert next(stream.iter_lines())
            assert server.stop() == 128 + signal.SIGTERM
    assert token.read_text().strip() not in (tmp_path / "stderr").read_text() + json.dumps(server.said)
    assert "Traceback" not in (tmp_path / "stderr").read_text()


@pytest.mark.long
@pytest.mark.req("S2-92")
def test_a_server_that_is_killed_before_it_answers_answers_once_after_its_restart(tmp_path: Path) -> None:
    prepare(tmp_path)
    with ServedProcess(tmp_path) as server:
        assert server.say("hi", "m1").status_code == 202
        until((tmp_path / "calls").exists)
        server.kill()
    may_reply(tmp_path)
    with ServedProcess(tmp_path) as server:
        assert server.say("hi", "m1").status_code == 202, "the client does not know that it was heard"
        until(lambda: server.messages() == ["hello"])
        assert server.say("more", "m2", wait=30).status_code == 200
        assert server.messages() == ["hello", "hello"]
        assert server.stop() == 128 + signal.SIGTERM
    assert heard(tmp_path) == ["m1", "m2"]


@pytest.mark.long
def test_a_second_signal_ends_it_while_a_call_is_under_way(tmp_path: Path) -> None:
    prepare(tmp_path)
    with ServedProcess(tmp_path) as server:
        server.say("hi", "m1")
        until((tmp_path / "calls").exists)
        server.process.send_signal(signal.SIGTERM)
        until(lambda: "stopping" in (tmp_path / "stderr").read_text())
        assert server.stop() == 128 + signal.SIGTERM


@pytest.mark.long
def test_the_token_of_the_environment_is_used_and_not_written_down(tmp_path: Path) -> None:
    prepare(tmp_path)
    with ServedProcess(tmp_path, environment={"RIPSTOP_TOKEN": "e" * 40}) as server:
        assert server.said["token"] == "RIPSTOP_TOKEN"
        assert server.client.get("/healthz").status_code == 200
        assert server.stop(signal.SIGINT) == 128 + signal.SIGINT
    assert not list((tmp_path / ".ripstop").glob("*token*"))


def test_without_the_extra_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    done = command("serve", "shop")
    assert done.code == 2 and "pip install 'ripstop[web]'" in done.err and len(done.err.splitlines()) == 1


def test_no_other_command_imports_a_web_server() -> None:
    code = (
        "import sys, contextlib, ripstop\n"
        "from ripstop.faces.cli.main import cli\n"
        "with contextlib.suppress(SystemExit): cli(['--help'])\n"
        "assert not {'starlette', 'uvicorn', 'h11', 'ripstop.faces.http'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, env=os.environ).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "There is nothing to serve"),
        (("nowhere",), "There is no workflow 'nowhere'"),
        (("graph.yaml",), "not a bot"),
        (("shop", "other/shop"), "would both be served as 'shop'"),
        (("shop", "--host", "no such host"), "not an address of this machine"),
        (("shop", "--port", "70000"), "--port"),
        (("shop", "--token-file", "weak"), "The token in the file weak cannot be used"),
    ],
)
def test_says_what_is_wrong_before_it_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_bot(tmp_path)
    (tmp_path / "other").mkdir()
    write_bot(tmp_path / "other")
    (tmp_path / "graph.yaml").write_text("name: g\nagents: { a: { prompt: hi } }\nedges: []\nstart: a\n")
    (tmp_path / "weak").write_text("weak")
    (tmp_path / "weak").chmod(0o600)
    done = command("serve", "--port", "0", *arguments)
    assert done.code == 2 and says in done.err, done.err


def test_a_port_that_is_taken_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_bot(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = command("serve", "shop", "--port", port)
    assert done.code == 2 and port in done.err and "Another process listens there" in done.err
    assert not (tmp_path / ".ripstop").exists(), "nothing was begun"


@pytest.mark.parametrize("name", ["serve", "web"])
def test_the_port_is_closed_until_the_token_is_in_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_bot(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    def find_token(path: Path, environment: object) -> tokens.FoundToken:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        raise UsageError("This was early enough.")

    monkeypatch.setattr(tokens, "find_token", find_token)
    done = command(name, "shop", "--port", str(port))
    assert done.code == 2 and "This was early enough." in done.err, done.err


def test_a_project_names_workflows_but_no_hosts(tmp_path: Path) -> None:
    (tmp_path / "ripstop.toml").write_text('[serve.workflows]\nshop = "bots/shop"\n')
    assert read_settings(tmp_path).serve.workflows == {"shop": "bots/shop"}
    (tmp_path / "ripstop.toml").write_text('[serve]\nhosts = ["evil.example"]\n')
    with pytest.raises(Exception, match="a project must not choose under which names your machine answers"):
        read_settings(tmp_path)
    (tmp_path / "ripstop.toml").write_text('[serve.workflows]\n"a/b" = "x"\n')
    with pytest.raises(Exception, match="cannot be in an address"):
        read_settings(tmp_path)


def test_a_bot_that_cannot_be_read_is_named_and_the_others_are_served(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good, bad = write_bot(tmp_path), write_bot(tmp_path, "broken") / "bot.yaml"
    right, wrong = bad.read_text(encoding="utf-8"), "tools: [{name: a}, {name: a}]"
    bad.write_text(wrong, encoding="utf-8")

    async def serve() -> None:
        async with App(Settings(store=f"sqlite:{tmp_path}/journal.db"), scope=None) as app:
            face = await open_face(app, {}, [str(good), str(bad.parent)])
            assert face.served == ("shop", "broken")
            transport = httpx2.ASGITransport(face.asgi)
            async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
                assert (await client.get("/conversations/shop/ann")).status_code == 404
                assert (await client.get("/conversations/broken/ann")).status_code == 500
                bad.write_text(right, encoding="utf-8")
                assert (await client.get("/conversations/broken/ann")).status_code == 404, "it was put right"
            bad.write_text(wrong, encoding="utf-8")
            with pytest.raises(DefinitionError):
                await open_face(app, {}, [str(bad.parent)])

    with caplog.at_level("ERROR", "ripstop.http"):
        asyncio.run(serve())
    assert "broken is not answered for until it is put right" in caplog.text


def test_a_bot_that_is_gone_or_no_bot_is_named_and_the_others_are_served(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good, graph = write_bot(tmp_path), tmp_path / "graph"
    (tmp_path / "empty").mkdir()
    shutil.copytree(Path(__file__).parents[4] / "examples" / "haiku", graph)
    named = {"good": str(good), **{name: str(tmp_path / name) for name in ("gone", "empty", "graph")}}

    async def serve() -> None:
        async with App(Settings(store=f"sqlite:{tmp_path}/journal.db"), scope=None) as app:
            face = await open_face(app, named, [])
            transport = httpx2.ASGITransport(Door(face.asgi, AllowedHosts(80), TokenAdmission(TOKEN)))
            token = {"authorization": f"Bearer {TOKEN}"}
            async with httpx2.AsyncClient(transport=transport, base_url="http://localhost", headers=token) as client:
                assert (await client.get("/conversations/good/ann")).status_code == 404
                for name in ("gone", "empty", "graph"):
                    assert (await client.get(f"/conversations/{name}/ann")).status_code == 500
                    said = await client.post(f"/conversations/{name}/ann/messages", json={"text": "Hello?", "id": "1"})
                    assert said.status_code == 500
            with pytest.raises(UsageError, match="gone"):
                await open_face(app, {"gone": named["gone"]}, [])

    with caplog.at_level("ERROR", "ripstop.http"):
        asyncio.run(serve())
    assert all(f"{named[name]} is not answered for" in caplog.text for name in ("gone", "empty", "graph"))
