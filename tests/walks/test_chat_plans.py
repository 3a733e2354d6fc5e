"""Plans that cannot be used: what users hear, who is told, and how a bot gets well again."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ripstop.testing.commands import Done, command
from tests.walks.talking_bot import decision, write_bot
from tests.walks.test_chatting import said


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        yield tmp_path


def bad_script(bot: Path, planner: str = "I cannot.", answers: int = 5) -> str:
    """A model whose plans cannot be used, but whose answers can."""
    lines: list[dict[str, Any]] = [{"agent": "planner", "reply": planner}] * answers
    lines += [{"agent": "assistant", "reply": json.dumps(decision(f"Answer {number}."))} for number in range(answers)]
    path = bot / "bad.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return f"script:{path}"


def good_script(bot: Path) -> str:
    """The bot's own script, with enough lines for a run that has used some of another one."""
    path = bot / "good.jsonl"
    path.write_text((bot / "script.jsonl").read_text(encoding="utf-8") * 5, encoding="utf-8")
    return f"script:{path}"


def say(bot: Path, text: str, model: str, session: str = "ann") -> Done:
    return command("chat", str(bot), "--session", session, "--message", text, "--json", "--model", model)


def runs() -> dict[str, str]:
    return {one["run"]: one["status"] for one in json.loads(command("runs", "--json").out)}


def plan_of() -> tuple[str, str]:
    return next((name, status) for name, status in runs().items() if name.startswith("plan:"))


def kinds(run: str) -> list[str]:
    return [json.loads(line)["type"] for line in command("log", run, "--json").out.splitlines()]


def test_a_bot_without_a_plan_answers_by_its_procedure_and_plans_again_with_another_model(here: Path) -> None:
    bot = write_bot(here, decision("Planned."), decision("With the plan."))
    bad = bad_script(bot)
    first = said(say(bot, "Hello", bad))
    assert [one["text"] for one in first["messages"]] == ["Hello! I am Mina.", "Answer 0."]
    assert plan_of()[1] == "failed" and json.loads(command("sessions", "plans", "--json").out) == []
    again = said(say(bot, "Hello?", bad))
    assert [one["text"] for one in again["messages"]] == ["Answer 1."], "the pause is not over"
    assert kinds(plan_of()[0]).count("planning.refused") == 1
    other = said(say(bot, "And now?", good_script(bot)))
    assert other["status"] == "ready" and plan_of()[1] == "completed"
    (kept,) = json.loads(command("sessions", "plans", "--json").out)
    assert kept["sop"] == "Help."


def test_an_outage_while_a_plan_is_made_keeps_no_session_waiting(here: Path) -> None:
    bot = write_bot(here, decision("Planned."), decision("With the plan."))
    (here / "ripstop.toml").write_text("attempts = 1\n", encoding="utf-8")
    away = ("--json", "--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1")
    first = command("chat", str(bot), "--session", "ann", "--message", "Hello", *away)
    assert [one["kind"] for one in json.loads(first.out)["messages"]] == ["greeting", "apology"]
    assert plan_of()[1] == "failed" and json.loads(command("desk", "--json").out) == []
    for session in ("ann", "ben"):
        again = json.loads(say(bot, "Hello?", good_script(bot), session).out)
        assert again["status"] == "ready" and again["messages"][-1]["kind"] == "answer", again
    assert plan_of()[1] == "completed", "made by the model that is in force now"


def test_a_new_session_does_not_plan_again_before_the_pause_is_over(here: Path) -> None:
    bot = write_bot(here, decision("Planned."))
    bad = bad_script(bot)
    say(bot, "Hello", bad)
    assert said(say(bot, "Hello", bad, session="bob"))["status"] == "ready"
    assert kinds(plan_of()[0]).count("planning.refused") == 1


def test_after_the_failures_that_are_allowed_the_desk_has_one_item_with_the_reply(here: Path) -> None:
    bot = write_bot(here, decision("Planned."), decision("With the plan."), max_failed_plans=1)
    bad = bad_script(bot, "No plan today.")
    for session in ("ann", "bob"):
        assert said(say(bot, "Hello", bad, session))["status"] == "ready", "users are answered all the same"
    (item,) = json.loads(command("desk", "--json").out)
    assert item["title"] == "shop" and "No plan of the bot 'shop' could be used" in item["question"]
    shown = json.loads(command("desk", item["id"], "--json").out)
    assert "No plan today." in json.dumps(shown)
    assert said(say(bot, "And now?", good_script(bot)))["status"] == "ready"
    assert plan_of()[1] == "completed" and json.loads(command("desk", "--json").out) == []


def test_a_bot_has_one_question_about_plans_and_none_once_it_is_planned(here: Path) -> None:
    for sop in ("One.", "Two.", "Three."):
        bot = write_bot(here, decision("Planned."), max_failed_plans=1, sop=sop)
        assert said(say(bot, "Hello", bad_script(bot)))["status"] == "ready"
        (item,) = json.loads(command("desk", "--json").out)
    assert item["run"] == next(name for name, status in runs().items() if status == "waiting")
    withdrawn = [name for name, status in runs().items() if name.startswith("plan:") and status == "stopped"]
    assert len(withdrawn) == 2 and "an earlier configuration" in command("why", withdrawn[0]).out
    (here / "other").mkdir()
    other = write_bot(here / "other", decision("Planned."), max_failed_plans=1).rename(here / "shop-two")
    say(other, "Hello", bad_script(other))
    assert len(json.loads(command("desk", "--json").out)) == 2, "other bots have theirs"
    bot = write_bot(here, decision("Planned."), max_failed_plans=1, sop="Four.")
    say(bot, "And now?", good_script(bot))
    (left,) = json.loads(command("desk", "--json").out)
    assert left["title"] == "shop-two" and list(runs().values()).count("stopped") == 3


def test_a_new_plan_of_the_same_configuration_withdraws_the_question_about_the_last_one(here: Path) -> None:
    bot = write_bot(here, decision("Planned."), max_failed_plans=1)
    say(bot, "Hello", bad_script(bot))
    (item,) = json.loads(command("desk", "--json").out)
    command("sessions", "replan", str(bot), "--model", bad_script(bot))
    (newer,) = json.loads(command("desk", "--json").out)
    assert newer["run"] == f"{item['run']}:2"
    assert command("answer", newer["id"], "continue", "--model", good_script(bot)).code == 0
    assert json.loads(command("desk", "--json").out) == []


def test_a_configuration_that_is_in_force_again_is_planned_again(here: Path) -> None:
    for sop in ("One.", "Two."):
        bot = write_bot(here, decision("Planned."), max_failed_plans=1, sop=sop)
        say(bot, "Hello", bad_script(bot))
    bot = write_bot(here, decision("Planned."), decision("By the plan."), max_failed_plans=1, sop="One.")
    assert said(say(bot, "And now?", good_script(bot)))["status"] == "ready"
    assert "completed" in runs().values() and json.loads(command("desk", "--json").out) == []


def test_a_new_plan_that_fails_keeps_no_session_from_the_old_one(here: Path) -> None:
    bot = write_bot(here, decision("Planned."), decision("With the old plan."))
    model = good_script(bot)
    say(bot, "Hello", model)
    done = command("sessions", "replan", str(bot), "--model", bad_script(bot))
    assert done.code == 1 and "No new plan: failed" in done.err
    answered = said(say(bot, "And now?", model))
    assert [one["text"] for one in answered["messages"]] == ["With the old plan."]
    log = command("log", "chat:shop:ann", "--json").out
    assert log.count('"start_run"') == 1, "the session has not asked for another plan"


def test_a_new_plan_is_made_by_the_model_that_made_the_last_one(here: Path) -> None:
    bot = write_bot(here, decision("Planned."))
    say(bot, "Hello", good_script(bot))
    done = command("sessions", "replan", str(bot), "--json")
    assert json.loads(done.out)["outcome"] == "completed", done.err
