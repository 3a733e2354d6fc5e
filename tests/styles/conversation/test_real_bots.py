"""The two forms that bots of the original system have, with invented content."""

import json
from pathlib import Path

import pytest

from ripstop.definitions.reader import Environment
from ripstop.styles.conversation.definition import config_hash
from ripstop.styles.conversation.reader import READER
from tests.styles.conversation.bots import bot_of, first_form, problems, read, said, second_form, write


@pytest.mark.req("S2-70", "S2-81")
def test_the_first_form_is_read_with_its_procedure(tmp_path: Path) -> None:
    (tmp_path / "procedure.md").write_text("1. Ask.\n2. Answer.\n")
    bot = bot_of(tmp_path, first_form(), "sop.json")
    assert bot.name == "sop"
    assert bot.config["basic_settings"]["instruction"] == "1. Ask.\n2. Answer.\n"
    assert bot.config["basic_settings"]["name"] == "Harbour Ferries"
    assert [(one.name, one.system, one.purpose) for one in bot.tools] == [
        ("find_text", False, ""),
        ("save_traveller", False, ""),
        ("handoff_to", True, "handoff"),
        ("close_conversation", True, "close_conversation"),
    ]
    assert [(one.id, one.tools) for one in bot.skills] == [
        ("skill_1", ("save_traveller",)),
        ("skill_2", ("handoff_to",)),
    ]
    assert bot.unknown == ("retrieve_knowledge_url", "basic_settings.chatbot_id")
    saved = bot.tools[1].endpoint
    assert saved is not None and (saved.method, saved.body, saved.kind) == ("POST", {"mail": "{email}"}, "unsafe")


@pytest.mark.req("S2-59", "S2-64")
def test_the_second_form_is_read(tmp_path: Path) -> None:
    bot = bot_of(tmp_path, second_form())
    assert [(one.name, one.purpose) for one in bot.tools if one.system] == [
        ("hand_off", "handoff"),
        ("close_conversation", "close_conversation"),
        ("tag_person", ""),
        ("upsert_contact_attributes", "update_profile"),
    ]
    assert [one.name for one in bot.tools if not one.system] == ["find_person", "flow_executor"]
    (flow,) = bot.flows
    assert (flow.id, flow.match, flow.description) == ("f-1", "intent", "Timetable")
    assert flow.patterns == ('Asks "when", 几点 or anything about times',), "what the model reads is not split"
    assert bot.config == second_form() and bot.unknown == ()


def test_what_is_odd_in_a_real_bot_is_said_with_its_place(tmp_path: Path) -> None:
    found = problems(tmp_path, second_form(), tools=())
    assert {one.severity for one in found} == {"warning"}
    lines = (tmp_path / "bot.json").read_text().splitlines()
    pointed = [lines[one.place.line - 1][one.place.column - 1 :].rstrip(",") for one in found]
    assert pointed == ['"/people/upsert"', '"save_traveller"', '"handoff_to"']
    assert "so calls to it fail" in found[0].text
    assert found[1].hint == "declare it in `tools`"
    assert found[2].hint == "did you mean 'hand_off'?"


def test_a_placeholder_that_no_parameter_provides_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "procedure.md").write_text("Ask.")
    assert "no parameter provides {botId}, {words}" in said(problems(tmp_path, first_form()))


def test_the_same_action_book_under_both_names_counts_once(tmp_path: Path) -> None:
    config = second_form()
    bot = bot_of(tmp_path, {**config, "skills": config["action_books"]})
    assert [one.id for one in bot.skills] == ["skill_1", "skill_2"]
    assert "the same skill is there already" in said(problems(tmp_path, {**config, "skills": config["action_books"]}))


@pytest.mark.req("S2-39")
def test_the_order_of_keys_does_not_change_the_hash(tmp_path: Path) -> None:
    config = second_form()
    turned = dict(reversed(config.items()))
    one, other = bot_of(tmp_path / "a", config), bot_of(tmp_path / "b", turned)
    assert one.hash == other.hash == config_hash(config)
    assert one.hash != bot_of(tmp_path / "c", {**config, "greeting": "Hi"}).hash


def test_the_text_of_the_procedure_is_part_of_the_hash(tmp_path: Path) -> None:
    (tmp_path / "procedure.md").write_text("Ask.")
    path = write(tmp_path, first_form())
    before = read(path).hash
    (tmp_path / "procedure.md").write_text("Ask twice.")
    assert read(path).hash != before


def test_a_procedure_that_is_missing_or_outside_is_an_error(tmp_path: Path) -> None:
    config = first_form()
    (found,) = (one for one in problems(tmp_path / "in", config) if one.severity == "error")
    assert (found.place.line, found.place.column) == (6, 18) and "there is no such file" in found.text
    (tmp_path / "secret.md").write_text("secret")
    (tmp_path / "in" / "link.md").symlink_to(tmp_path / "secret.md")
    for outside in ("../secret.md", str(tmp_path / "secret.md"), "./link.md", "./../secret.md"):
        config["basic_settings"]["instruction"] = outside
        found = problems(tmp_path / "in", config)[0]
        assert found.severity == "error" and "cannot be read" in found.text and found.place.line == 6, outside


def test_both_forms_are_recognised_whatever_their_file_is_called(tmp_path: Path) -> None:
    for number, config in enumerate((first_form(), second_form(), {"sop": "Ask.", "tone": "calm"})):
        path = write(tmp_path, config, f"{number}_sop.json")
        assert READER.find(path) == path
        plain = write(tmp_path, json.dumps(config), f"{number}.yaml")
        assert READER.find(plain) == plain
    assert len(READER.find_all(tmp_path)) == 3, "only names with bot or sop in them are looked at"
    assert READER.check(tmp_path / "2_sop.json", Environment()) == []
