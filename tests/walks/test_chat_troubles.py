"""Chats in which something goes wrong: what the user hears, what the operator is told, and what is refused."""

import json
import os
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from ripstop.styles.conversation.definition import CHECKING
from ripstop.testing.commands import Done, command
from tests.walks.talking_bot import BROKEN, GREETING, HANDOFF, decision, script, write_bot
from tests.walks.test_chatting import as_desk, open_stdin, said, say

APOLOGY = "Sorry, that went wrong."
CLOSE = {"type": "SYSTEM", "target": "close_conversation"}
UNKNOWN = {"type": "SYSTEM", "target": "free_slots"}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        yield tmp_path


def calls(target: str, **params: str) -> dict[str, Any]:
    return decision(None, "processing", {"type": "TOOL", "target": target, "params": params})


# A message is never left without an answer


def test_an_action_that_does_not_exist_ends_in_an_apology_and_exit_code_1(here: Path) -> None:
    wanted = [decision(None, "processing", UNKNOWN)] * 2
    bot = write_bot(here, decision("Hi."), *wanted, apology=APOLOGY)
    say(bot, "Hello")
    done = say(bot, "When are you free?", "--json")
    assert (done.code, said(done)["status"]) == (1, "cancelled")
    assert said(done)["messages"] == [{"kind": "apology", "text": APOLOGY}]
    assert said(done)["actions"] == [{**UNKNOWN, "visible": False, "failed": True}] * 2


def test_why_a_pass_was_broken_off_is_said_to_the_operator(here: Path) -> None:
    bot = write_bot(here, decision("Hi."), BROKEN, BROKEN, BROKEN, BROKEN, apology=APOLOGY)
    assert "because" not in said(say(bot, "Hello", "--json"))
    told = say(bot, "And now?")
    cause = "the decision breaks the contract: 'typing' needs a 'response' for the user"
    assert (told.code, told.out) == (1, f"{APOLOGY}\n")
    assert f"The pass was broken off: {cause}" in told.err and "ripstop why chat:shop:ann" in told.err
    assert cause in command("why", "chat:shop:ann").out
    assert said(say(bot, "And now?", "--json"))["because"] == cause


LONG_FLOW = """\
name: sizes
initial_message: which size
max_turns: 9
agents: [{ name: tailor, type: ask }]
states:
  - name: measure
    agent: tailor
    start: true
    prompt: "{{COLLABORATION_GUIDE}} Measure. decisions: done"
    transitions: [{ to: END, condition: done }, { to: measure, condition: NOT done }]
"""


@pytest.mark.parametrize("is_session", [False, True])
def test_a_flow_that_uses_up_the_budget_ends_the_bot_at_its_limit(here: Path, is_session: bool) -> None:
    bot = write_bot(
        here, decision("Hi."), apology=APOLOGY, flows=[{"id": "sizes", "keywords": ["size"], "workflow": "sizes"}]
    )
    (bot / "sizes").mkdir()
    (bot / "sizes" / "workflow.yaml").write_text(LONG_FLOW, encoding="utf-8")
    again = {"agent": "tailor", "reply": json.dumps({"content": "Hm.", "decisions": {"done": False}})}
    (bot / "script.jsonl").write_text(f"{json.dumps(again)}\n" * 9, encoding="utf-8")
    if is_session:
        (here / "ripstop.toml").write_text("[limits]\ncalls = 2\n", encoding="utf-8")
        assert said(say(bot, "Which size?", "--json"))["messages"][-1] == {"kind": "apology", "text": APOLOGY}
        run_id = "chat:shop:ann"
    else:
        done = command("run", str(bot), "--input", "Which size?", "--model", script(bot), "--max-calls", "2", "--json")
        assert done.code == 3
        run_id = json.loads(done.out)["run"]
    ended = json.loads(command("show", run_id, "--json").out)
    assert ended["outcome"] == "limit" and "limit of 2 calls" in ended["because"]


# What people at the desk type


@pytest.fixture
def transferred(here: Path) -> str:
    """The id of the question on the desk."""
    bot = write_bot(here, HANDOFF, decision("The bot is back."))
    say(bot, "A person, please")
    (item,) = json.loads(command("desk", "--json").out)
    return str(item["id"])


def test_an_answer_without_words_is_refused_and_not_sent(transferred: str) -> None:
    done = command("answer", transferred, "reply", "--as", "kim")
    assert done.code == 2 and "needs the words that the user is sent" in done.err
    messages = said(command("sessions", "show", "ann", "--json"))["messages"]
    assert [one["kind"] for one in messages] == ["user", "greeting", "transfer"]


def test_words_with_a_release_are_sent_before_the_bot_has_it_again(transferred: str) -> None:
    done = command("answer", transferred, "release", "Bye!", "--as", "kim")
    assert done.code == 0
    session = said(command("sessions", "show", "ann", "--json"))
    last = session["messages"][-1]
    assert (last["kind"], last["text"], session["status"]) == ("desk", "Bye!", "ready")


def test_the_next_step_names_the_options_that_a_bot_needs(transferred: str) -> None:
    command("chat", "shop", "--session", "ann", "--message", "Hello?")
    done = command("answer", transferred, "release", "--as", "kim")
    assert "Resume it:  ripstop resume chat:shop:ann  (with the --tools and --allow that it needs)" in done.out, done


@pytest.mark.parametrize("line", ["/relase", "/help", "/release now", "/释放"])
def test_a_slip_in_a_command_is_not_sent_to_the_customer(
    transferred: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_stdin(f"{line}\n".encode(), monkeypatch):
        done = as_desk()
    assert done.code == 2 and ("there are: /release, /take, /quit" in done.err or "is typed alone" in done.err)
    assert line not in command("sessions", "show", "ann").out


def test_two_slashes_send_one(transferred: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_stdin(b"//etc/hosts is the file\n/ is the root\n/quit\nnever\n", monkeypatch):
        assert as_desk().code == 0
    texts = [one["text"] for one in said(command("sessions", "show", "ann", "--json"))["messages"]]
    assert texts[-2:] == ["/etc/hosts is the file", "/ is the root"]


# Sessions


def test_the_newest_messages_of_both_sides_are_shown_and_counted(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bot = write_bot(here, *(decision(f"answer {number}") for number in range(35)))
    with open_stdin("".join(f"question {number}\n" for number in range(35)).encode(), monkeypatch):
        assert command("chat", str(bot), "--session", "ann", "--model", script(bot)).code == 0
    shown = command("sessions", "show", "ann").out
    assert re.search(r"  (\d+) user: question 34\n  bot \(answers \1\): answer 34\n", shown), shown
    assert "question 0\n" not in shown
    assert "… 31 earlier messages" in shown  # of a greeting, 35 questions and 35 answers
    session = said(command("sessions", "show", "ann", "--json"))
    asked, *_, answered = session["messages"]
    assert len(session["messages"]) == 71 and (asked["kind"], asked["text"]) == ("user", "question 0")
    assert answered["text"] == "answer 34" and answered["answers"] == [session["messages"][-2]["id"]]
    assert session["before"] == 0 and session["records"] > 71


def test_what_is_before_the_window_is_counted(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ripstop.styles.conversation.session_view.MOST_RECORDS", 5)
    bot = write_bot(here, decision("Hi."))
    say(bot, "Hello")
    session = said(command("sessions", "show", "ann", "--json"))
    assert session["before"] == session["records"] - 5 > 0
    assert f"and {session['before']} records before them" in command("sessions", "show", "ann").out


def test_a_closed_session_says_so_and_the_next_message_opens_it(here: Path) -> None:
    bot = write_bot(here, decision("Bye!", "typing", CLOSE), decision("Hi again."))
    assert said(say(bot, "Bye", "--json"))["closed"] is True
    shown = command("sessions", "show", "ann").out
    assert shown.startswith("chat:shop:ann  closed\n") and "ready" not in shown and "listening" not in shown
    assert "closed" not in said(say(bot, "Hello", "--json"))


# Tools and addresses


def endpoint(url: str, **more: Any) -> dict[str, Any]:
    return {"name": "insurance", "description": "Who is insured.", "endpoint": {"url": url, **more}}


def test_a_call_that_failed_is_marked(here: Path) -> None:
    bot = write_bot(here, calls("insurance"), decision("I cannot see it."), tools=[endpoint("https://shop.example/x")])
    found = said(say(bot, "Am I insured?", "--json"))
    assert found["actions"] == [{"type": "TOOL", "target": "insurance", "visible": True, "failed": True}]


def test_a_consent_to_a_private_address_says_what_else_it_needs(here: Path) -> None:
    url = "http://127.0.0.1:9"
    bot = write_bot(here, decision("Hi."), decision("Hi."), tools=[endpoint(f"{url}/x")])
    also = f"{url} is a private address, so calls of insurance also need --allow {url}."
    agreed = command("trust", str(bot), "--yes")
    assert agreed.code == 0 and also in agreed.err
    assert f"warning: {also}" in say(bot, "Hello").err
    assert say(bot, "Hello", "--allow", url, session="bob").err == ""


def test_trust_says_what_was_agreed_to_before(here: Path) -> None:
    bot = write_bot(here, decision("Hi."), tools=[endpoint("https://shop.example/x")])
    command("trust", str(bot), "--yes")
    again = command("trust", str(bot))
    assert again.code == 0 and "agreed  endpoint  https://shop.example" in again.out
    assert "names nothing" not in again.out


def test_a_secret_that_is_not_set_is_named_before_the_first_call(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHOP_KEY", raising=False)
    headers = {"Authorization": "Bearer ${SHOP_KEY}"}
    bot = write_bot(here, decision("Hi."), tools=[endpoint("https://shop.example/x", headers=headers)])
    unset = "The environment variable SHOP_KEY is not set, so calls of insurance fail."
    checked = command("check", str(bot), "--strict", "--any-name")
    assert checked.code == 0 and unset in checked.out, "it is not a problem of the definition"
    assert f"warning: {unset}" in say(bot, "Hello").err
    monkeypatch.setenv("SHOP_KEY", "k")
    assert unset not in command("check", str(bot)).out


def test_the_command_that_continues_a_session_has_its_options(here: Path) -> None:
    (here / "goods.py").write_text('import ripstop\n\n@ripstop.tool("pure")\ndef stock() -> int:\n    return 1\n')
    bot = write_bot(here, decision("Hi."))
    options = ("--tools", "goods", "--allow", "http://127.0.0.1:9", "--by", "ann b")
    done = command("chat", str(bot), "--message", "Hello", "--model", script(bot), *options)
    assert done.err.splitlines()[0].endswith(" --by 'ann b' --tools goods --allow http://127.0.0.1:9"), done.err


def test_a_module_that_is_not_there_says_where_it_was_looked_for(here: Path) -> None:
    done = say(write_bot(here, decision("Hi.")), "Hello", "--tools", "missing_tools")
    assert done.code == 2 and f"It is not in {here}, and not where Python looks." in done.err


def test_a_tool_that_nothing_brings_is_no_slip_of_a_tool_with_a_similar_name(here: Path) -> None:
    bot = write_bot(here, decision("Hi."), tools=[{"name": "create_booking"}])
    found = command("check", str(bot)).out
    assert "bring it with --tools MODULE" in found and "did you mean" not in found


def test_a_single_message_that_is_answered_is_not_to_be_resumed(here: Path) -> None:
    bot = write_bot(here, decision("Hi."))
    done = command("run", str(bot), "--input", "Hello", "--model", script(bot))
    assert done.code == 0 and "Hi." in done.out and "ripstop resume" not in done.out + done.err, done


class Rude(Thread):
    """A server that breaks every connection off when a request has come."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def run(self) -> None:
        with closing(self._listener):
            connection, _ = self._listener.accept()
            with closing(connection):
                connection.recv(65536)


def test_a_doubt_names_the_tool_of_the_bot_and_what_it_was_given(here: Path) -> None:
    server = Rude()
    server.start()
    tool = endpoint(f"{server.url}/refunds/{{order}}", method="POST")
    bot = write_bot(here, calls("insurance", order="1002"), decision("Done."), tools=[tool])
    done: Done = say(bot, "My money back", "--allow", server.url)
    assert done.code == 4 and done.out.startswith(GREETING), done
    (item,) = json.loads(command("desk", "--json").out)
    assert """The tool 'insurance' was called with {"order":"1002"} (""" in item["question"], item
    assert "http_request" not in item["question"] and "{order}" not in item["question"]
    shown = command("desk", item["id"]).out
    assert f"{server.url}/refunds" in shown and "POST" in shown, "all that would be done again"


def test_who_writes_while_a_flow_is_paused_by_an_outage_waits_and_it_is_said_for_what(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RIPSTOP_BASE_URL", "http://127.0.0.1:9/v1")
    flows = [{"id": "sizes", "keywords": ["size"], "workflow": "sizes"}]
    bot = write_bot(here, decision("Hi."), decision("Still here."), flows=flows)
    (bot / "sizes").mkdir()
    away = LONG_FLOW.replace("type: ask }", "type: ask, model: openai:m }")
    (bot / "sizes" / "workflow.yaml").write_text(away, encoding="utf-8")
    (here / "ripstop.toml").write_text(f'attempts = 1\n[models]\ndefault = "{script(bot)}"\n', encoding="utf-8")
    tell = ("chat", str(bot), "--session", "ann", "--message")
    for words in ("Which size?", "Are you there?"):
        done = command(*tell, words)
        assert done.code == 4 and "ripstop show chat:shop:ann" in done.err, done
        assert done.out == f"{CHECKING}\n", "no process stays that could say it later"
    (item,) = json.loads(command("desk", "--json").out)
    assert item["kind"] == "outage"
    assert command("answer", item["id"], "give up").code == 0
    done = command(*tell, "Hello?")
    assert done.code == 0 and done.out.endswith("Hi.\n"), done
