"""Chats from scripts: one message at a time, lines of stdin, both sides, sessions and plans."""

import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from ripstop.styles.conversation.cli import sessions
from ripstop.testing.commands import Done, command
from tests.walks.talking_bot import BROKEN, GREETING, HANDOFF, decision, script, write_bot

TOOL = {"type": "TOOL", "target": "nothing"}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        yield tmp_path


def say(bot: Path, text: str, *more: str, session: str = "ann") -> Done:
    return command("chat", str(bot), "--session", session, "--message", text, "--model", script(bot), *more)


def said(done: Done) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.out)
    return found


@pytest.mark.req("S2-1", "S2-14", "S2-15")
def test_a_message_is_answered_and_the_session_goes_on(here: Path) -> None:
    bot = write_bot(here, decision("It is on its way."), decision("You are welcome."))
    first = say(bot, "Where is my order?")
    assert (first.code, first.out) == (0, f"{GREETING}\nIt is on its way.\n"), first
    second = command("chat", "shop", "--session", "ann", "--message", "Thanks!")
    assert (second.code, second.out) == (0, "You are welcome.\n"), "it has the model that it began with"


def test_programs_get_exactly_what_the_pass_was(here: Path) -> None:
    timers = [{"delay": 300, "message": "Are you there?"}]
    bot = write_bot(here, decision("Hi.", "processing", TOOL), decision("Done."), timers=timers)
    done = say(bot, "Hello", "--json")
    found = said(done)
    assert done.code == 0 and list(found) == ["run", "session", "status", "messages", "actions", "timers", "usage"]
    assert (found["run"], found["session"], found["status"]) == ("chat:shop:ann", "ann", "ready")
    kinds = [(one["kind"], one["text"]) for one in found["messages"]]
    assert kinds == [("greeting", GREETING), ("note", "Hi."), ("answer", "Done.")]
    assert found["actions"] == [{"type": "TOOL", "target": "nothing", "visible": True, "failed": True}]
    assert [{*one} for one in found["timers"]] == [{"name", "due"}] and found["timers"][0]["name"] == "Are you there?"
    assert found["usage"] == {"calls": 2, "input_tokens": 0, "output_tokens": 0, "money": 0.0}


@pytest.mark.req("S2-24", "S2-36")
def test_a_transferred_conversation_waits_for_a_person(here: Path) -> None:
    bot = write_bot(here, HANDOFF)
    done = say(bot, "A person, please", "--json")
    assert (done.code, said(done)["status"]) == (4, "transferred")
    assert said(done)["messages"][-1] == {"kind": "transfer", "text": "A colleague will write to you."}
    assert "ripstop chat --as-desk chat:shop:ann" in done.err
    silent = say(bot, "Hello?", "--json")
    assert (silent.code, said(silent)["messages"]) == (4, [])


def test_a_pass_that_breaks_off_is_an_apology_and_exit_code_1(here: Path) -> None:
    bot = write_bot(here, decision("Hi."), BROKEN, BROKEN, apology="Sorry.")
    assert say(bot, "Hello").code == 0
    done = say(bot, "And now?", "--json")
    assert (done.code, said(done)["status"]) == (1, "cancelled")
    assert said(done)["messages"] == [{"kind": "apology", "text": "Sorry."}]


def test_the_question_of_a_flow_is_among_the_messages_and_waits(here: Path) -> None:
    assert command("init", "conversation", "shop").code == 0
    done = say(here / "shop", "Which size do I need?", "--json")
    assert done.code == 4, done
    assert said(done)["messages"][0]["kind"] == "flow" and said(done)["actions"][0]["type"] == "FLOW"


@pytest.mark.parametrize(
    "options",
    [
        ("--message", "  "),
        ("--message", "x" * 20_001),
        ("--message", "hi", "--session", ""),
        ("--message", "hi", "--session", "a\nb"),
        ("--message", "hi", "--message-id", "1"),
        ("--session", "ann", "--message-id", "1"),
        ("--message", "hi", "--take"),
        ("--release",),
        ("--as-desk", "--session", "ann"),
        ("--message", "hi", "--set", "novalue"),
        ("--message", "hi", "--model", "script:missing.jsonl"),
        ("--json",),
    ],
)
def test_wrong_usage_leaves_nothing_behind(here: Path, options: tuple[str, ...]) -> None:
    bot = write_bot(here, decision("Hi."))
    before = {*here.iterdir()}
    model = () if "--model" in options else ("--model", script(bot))
    assert command("chat", "shop", *model, *options).code == 2
    assert {*here.iterdir()} == before


@pytest.mark.parametrize("config", ["missing", "graph"])
def test_what_is_not_a_bot_is_refused(here: Path, config: str) -> None:
    if config == "graph":
        assert command("init", "graph", "graph").code == 0
    done = command("chat", config, "--message", "hi")
    assert done.code == 2 and "Traceback" not in done.err
    assert not (here / ".ripstop").exists()


def test_a_session_without_a_name_gets_one_that_is_said(here: Path) -> None:
    bot = write_bot(here, decision("Hi."), decision("Again."))
    done = command("chat", str(bot), "--message", "Hello", "--model", script(bot))
    again = done.err.splitlines()[0].partition("ripstop ")[2].split()
    assert done.code == 0 and again[:3] == ["chat", str(bot), "--session"], done.err
    assert command(*again, "--message", "Hello").out == "Again.\n"


def test_a_message_can_come_from_stdin(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bot = write_bot(here, decision("Hi."))
    with open_stdin(b"Hello\nthere\n", monkeypatch):
        assert say(bot, "-").code == 0
    log = command("log", "chat:shop:ann", "--json").out
    assert [one["text"] for one in map(json.loads, log.splitlines()) if one["type"] == "heard"] == ["Hello\nthere"]


def test_a_message_from_stdin_must_be_short_and_utf_8(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bot = write_bot(here, decision("Hi."))
    for content, problem in (
        (b"x" * 60_000, "at most 20,000 characters, and stdin has more"),
        (b"a\xff\xfeb\n", "What stdin holds is not UTF-8 text"),
        (b"\xe4\xbd", "What stdin holds is not UTF-8 text"),
    ):
        with open_stdin(content, monkeypatch):
            refused = say(bot, "-")
        assert refused.code == 2 and problem in refused.err, refused
    assert not (here / ".ripstop").exists()
    with open_stdin("你".encode() * 20_000 + b"\r\n", monkeypatch):
        assert say(bot, "-").code == 0


def test_a_line_of_stdin_that_is_not_utf_8_is_not_sent(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bot = write_bot(here, decision("Hi."))
    with open_stdin(b"Hello\nnot \xff text\n", monkeypatch):
        refused = command("chat", str(bot), "--session", "ann", "--model", script(bot))
    assert refused.code == 2 and r"This line of stdin is not UTF-8 text: b'not \xff text'." in refused.err
    log = command("log", "chat:shop:ann", "--json").out
    assert [one["text"] for one in map(json.loads, log.splitlines()) if one["type"] == "heard"] == ["Hello"]


class open_stdin:
    """Stdin as a pipe with these bytes in it."""

    def __init__(self, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
        read, write = os.pipe()
        os.write(write, content)
        os.close(write)
        self._file = os.fdopen(read)
        monkeypatch.setattr(sys, "stdin", self._file)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        self._file.close()


def test_every_line_of_stdin_is_answered_before_the_next(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bot = write_bot(here, decision("One."), decision("Two.\x1b[31m"), decision("Three."))
    with open_stdin("a\n\nb\nc ü".encode(), monkeypatch):
        done = command("chat", str(bot), "--session", "ann", "--model", script(bot))
    assert (done.code, done.out) == (0, f"{GREETING}\nOne.\nTwo.\\x1b[31m\nThree.\n")
    with open_stdin(b"", monkeypatch):
        assert command("chat", str(bot), "--session", "ann") == (0, "", "")


def test_the_exit_code_of_a_chat_by_lines_is_that_of_the_last(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bot = write_bot(here, decision("One."), HANDOFF)
    with open_stdin(b"a\nb\n", monkeypatch):
        done = command("chat", str(bot), "--model", script(bot))
    assert (done.code, done.out.splitlines()[-1]) == (4, "A colleague will write to you.")


def test_the_same_message_id_is_answered_once(here: Path) -> None:
    bot = write_bot(here, decision("One."), decision("Two."))
    first = say(bot, "Hello", "--message-id", "m1", "--json")
    second = say(bot, "Hello", "--message-id", "m1", "--json")
    assert said(first)["messages"] == said(second)["messages"]
    assert said(say(bot, "Hello", "--message-id", "m2", "--json"))["messages"] == [{"kind": "answer", "text": "Two."}]


def test_variables_are_for_a_new_session(here: Path) -> None:
    bot = write_bot(here, decision("Hi."), decision("Again."))
    assert say(bot, "Hello", "--set", "plan=gold").err == ""
    assert "--set changes nothing" in say(bot, "Hello", "--set", "plan=silver").err


def test_another_model_can_be_given_to_a_session(here: Path) -> None:
    bot = write_bot(here, decision("Hi."), decision("Old."))
    say(bot, "Hello")
    new = write_bot(here, decision("Hi."), decision("New."))
    (new / "script.jsonl").rename(here / "new.jsonl")
    done = command("chat", "shop", "--session", "ann", "--message", "Hello", "--model", "script:new.jsonl")
    assert (done.code, done.out) == (0, "New.\n"), done


def test_addresses_without_consent_are_a_warning(here: Path) -> None:
    tool = {"name": "orders", "endpoint": "https://shop.example/orders"}
    bot = write_bot(here, decision("Hi."), decision("Hi."), tools=[tool])
    done = say(bot, "Hello")
    assert done.code == 0 and done.out == f"{GREETING}\nHi.\n"
    assert "warning: Its tools call https://shop.example" in done.err and f"ripstop trust {bot}" in done.err
    assert say(bot, "Hello", "--allow", "https://shop.example", session="bob").err == ""


def test_tools_that_this_process_lacks_are_named(here: Path) -> None:
    bot = write_bot(here, decision("Hi."), tools=[{"name": "find_order"}])
    assert "does not have the tool 'find_order'" in say(bot, "Hello").err


# The desk


@pytest.fixture
def transferred(here: Path) -> Path:
    bot = write_bot(here, HANDOFF, decision("The bot is back."))
    say(bot, "A person, please\n    kim:  all is well")
    return bot


def as_desk(*arguments: str, by: str = "kim") -> Done:
    return command("chat", "--as-desk", "ann", "--by", by, *arguments)


@pytest.mark.req("S2-36")
def test_a_person_answers_in_the_chat_and_gives_it_back(transferred: Path) -> None:
    done = as_desk("--message", "I am Kim.", "--json")
    assert (done.code, said(done)["messages"]) == (0, [{"kind": "desk", "text": "I am Kim."}])
    say(transferred, "Thank you, Kim")
    back = as_desk("--release", "--json")
    assert said(back)["messages"] == [{"kind": "answer", "text": "The bot is back."}], "what nobody answered"
    refused = as_desk("--message", "One more thing")
    assert refused.code == 2 and "The bot has this conversation. Take it over with --take." in refused.err


def test_another_person_needs_to_take_it_over(transferred: Path) -> None:
    assert as_desk("--message", "I am Kim.").code == 0
    for option in (("--message", "I am Eve."), ("--release",)):
        refused = as_desk(*option, by="eve")
        assert refused.code == 2 and "kim has this conversation. Take it over with --take." in refused.err
    assert as_desk("--message", "I am Eve.", "--take", by="eve").code == 0
    assert as_desk("--message", "Kim again").code == 2
    (session,) = json.loads(command("sessions", "--json").out)
    assert (session["taken_by"], session["workflow_state"]["status"]) == ("eve", "transferred")


def test_a_conversation_is_taken_from_the_bot(here: Path) -> None:
    bot = write_bot(here, decision("Hi."), decision("Back."))
    say(bot, "Hello")
    assert as_desk("--take").code == 0
    assert said(say(bot, "Anyone?", "--json"))["status"] == "transferred"


def test_the_desk_shows_the_conversation_as_it_is_now(transferred: Path) -> None:
    say(transferred, "Hello?")
    (item,) = json.loads(command("desk", "--kind", "handoff", "--json").out)
    assert [(line["by"], line["is_reply"]) for line in item["talk"]] == [
        ("user", False), ("bot", True), ("bot", True), ("user", False),
    ]  # fmt: skip
    shown = command("desk", item["id"]).out
    assert "    user:  A person, please\n          kim:  all is well\n" in shown, "no text looks like another's"
    assert "    user:  Hello?\n" in shown and f"ripstop answer {item['id']} release" in shown
    ways = f"ripstop answer {item['id']} TEXT   ·   ripstop answer {item['id']} release"
    assert ways in shown and ways in " ".join(command("show", item["run"]).out.splitlines())


def test_answers_on_the_desk_go_to_the_user_until_it_is_released(transferred: Path) -> None:
    (item,) = json.loads(command("desk", "--json").out)
    for text in ("I am Kim.", "Still here."):  # under the number that Kim knows
        done = command("answer", item["id"], text, "--as", "kim")
        assert done.code == 0 and "The conversation stays on the desk as chat:shop:ann/" in done.out, done
    other = command("answer", item["id"], "I am Eve.", "--as", "eve")
    assert other.code == 2 and "kim has this conversation. Take it over before you answer." in other.err
    assert "`ripstop act chat:shop:ann take --as eve` does so." in other.err
    assert command("answer", item["id"], "release", "--as", "kim").code == 0
    assert json.loads(command("desk", "--json").out) == []
    shown = command("sessions", "show", "ann").out
    assert "kim: I am Kim.\n  kim: Still here.\n" in shown
    assert command("chat", "shop", "--session", "ann", "--message", "Bye").out == "The bot is back.\n"


def test_every_line_of_stdin_goes_to_the_user(transferred: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_stdin(b"I am Kim.\n\nPlease wait.\n/release\n", monkeypatch):
        assert as_desk().code == 0
    assert "kim: I am Kim.\n  kim: Please wait.\n" in command("sessions", "show", "ann").out
    (session,) = json.loads(command("sessions", "--json").out)
    assert session["workflow_state"]["status"] == "ready"


def test_the_desk_side_names_what_is_not_there(transferred: Path) -> None:
    assert "There is no session 'bob'" in command("chat", "--as-desk", "bob", "--by", "kim").err
    assert command("chat", "--as-desk", "ann", "--by", "").code == 2
    shown = as_desk()
    assert shown.out.endswith("bot:\n  A colleague will write to you.\n")


# Sessions and plans


def test_looking_makes_no_store(here: Path) -> None:
    for arguments in (("sessions",), ("sessions", "--json"), ("sessions", "plans"), ("sessions", "shop")):
        assert command(*arguments).code == 0
    assert command("sessions", "show", "ann").code == 2
    assert not (here / ".ripstop").exists()


@pytest.mark.req("S2-90", "S2-91")
def test_sessions_and_plans_are_documents(here: Path) -> None:
    bot = write_bot(here, decision("Hi."), decision("Two."), HANDOFF)
    for session in ("ann", "bob"):
        say(bot, "Hello", session=session)
    for text in ("More", "A person"):
        say(bot, text)
    listed = {one["id"]: one for one in json.loads(command("sessions", "shop", "--json").out)}
    assert {*listed} == {"ann", "bob"} and listed["bob"]["workflow_state"].keys() == {"hash", "need_greeting", "status"}
    (plan,) = json.loads(command("sessions", "plans", "--json").out)
    names = "workflow_id hash name tone greeting sop tools skills timers constraints"
    assert {*plan} == {*names.split()} and plan["hash"] == listed["ann"]["workflow_state"]["hash"]
    of_path = json.loads(command("sessions", str(bot), "--status", "transferred", "--json").out)
    assert [one["id"] for one in of_path] == ["ann"]
    assert json.loads(command("sessions", "other", "--json").out) == []
    table = command("sessions", "--limit", "1").out.splitlines()
    assert len(table) == 3 and table[1].startswith("ann") and "--limit" in table[2]
    limited = command("sessions", "--limit", "1", "--json")
    assert len(json.loads(limited.out)) == 1 and limited.err == "Not all sessions are listed: --limit is 1.\n"
    assert said(command("sessions", "show", "chat:shop:bob", "--json"))["session"] == "bob"


def test_programs_get_every_session(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bot = write_bot(here, decision("Hi."))
    say(bot, "Hello")
    (kept,) = json.loads(command("sessions", "--json").out)

    async def documents(*_: object) -> AsyncIterator[dict[str, Any]]:
        for number in range(120):
            yield {**kept, "id": str(number)}

    monkeypatch.setattr(sessions, "documents", documents)
    every = command("sessions", "--json")
    assert ([one["id"] for one in json.loads(every.out)], every.err) == ([str(number) for number in range(120)], "")
    assert len(command("sessions").out.splitlines()) == 52, "a heading, 50 of them, and that there are more"


def test_two_bots_can_have_a_session_of_one_name(here: Path) -> None:
    bot = write_bot(here, decision("Hi."))
    other = here / "other"
    other.mkdir()
    (other / "bot.json").write_bytes((bot / "bot.json").read_bytes())
    say(bot, "Hello")
    command("chat", str(other), "--session", "ann", "--message", "Hello", "--model", script(bot))
    refused = command("sessions", "show", "ann")
    assert refused.code == 2 and "chat:other:ann or chat:shop:ann" in refused.err


def test_a_new_plan_is_used_from_the_next_message_on(here: Path) -> None:
    bot = write_bot(here, decision("Hi."), decision("Old."))
    for session in ("ann", "bob"):
        say(bot, "Hello", session=session)
    done = command("sessions", "replan", str(bot), "--model", script(bot))
    assert done.code == 0 and "2 sessions will use it from the next message on." in done.out
    assert said(say(bot, "Hello", "--json"))["usage"]["calls"] >= 1
    records = [json.loads(line) for line in command("log", "chat:shop:ann", "--json").out.splitlines()]
    asked = [one["command"]["name"] for one in records if one.get("command", {}).get("type") == "start_run"]
    assert len(asked) == 2 and asked[1] == f"{asked[0]}:2"
    (bot / "script.jsonl").write_text('{"agent": "planner", "reply": "no"}\n' * 3)
    broken = command("sessions", "replan", str(bot), "--model", script(bot))
    assert broken.code == 1 and "No new plan: failed" in broken.err


def test_a_question_is_searched_for_in_the_bots_knowledge(here: Path) -> None:
    bot = write_bot(here, decision("Hi."), knowledge="faq", passages=1)
    (bot / "faq").mkdir()
    (bot / "faq" / "returns.md").write_text("# Returns\n\nWithin 30 days.\n\n# More returns\n\nAll returns are free.\n")
    assert len(json.loads(command("kb", "search", "returns", str(bot), "--json").out)["passages"]) == 1
    assert len(json.loads(command("kb", "search", "returns", "shop", "--most", "2", "--json").out)["passages"]) == 2
    assert command("kb", "search", "returns", str(bot), "--folder", "faq").code == 2
    write_bot(here, decision("Hi."))
    assert "has no knowledge base" in command("kb", "search", "returns", str(bot)).err
