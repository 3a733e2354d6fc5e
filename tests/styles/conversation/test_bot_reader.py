"""Bots as files: what is understood, what is refused, and where."""

import os
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ripstop.app.plugins import BUILT_IN, Plugins
from ripstop.definitions.loading import find_all, locate
from ripstop.definitions.problems import WrongDefinition
from ripstop.definitions.reader import Environment
from ripstop.styles.conversation.bot_fields import BotFields, read_options
from ripstop.styles.conversation.default_texts import DefaultTexts
from ripstop.styles.conversation.definition import Bot, BotAction, BotFlow, BotTool, Endpoint, TimerRule, config_hash
from ripstop.styles.conversation.reader import READER, workflow_id
from ripstop.styles.conversation.schema import LONGEST_MESSAGE, OPTIONS
from tests.styles.conversation.bots import bot_of, problems, read, said, write

OTHERS = list(Plugins([plugin for plugin in BUILT_IN if plugin.name != "conversation"]).readers)
ALL = [*OTHERS, READER]
SEED = """\
name: Mina
tone: warm
greeting: Hello!
sop: |
  1. Ask.
tools:
  - name: find_order
    description: Finds an order
    endpoint: { url: "https://shop.example/orders/{id}", timeout: 5 }
    parameters: { type: object, properties: { id: { type: string } } }
skills:
  - { id: late, condition: It is late, action: Say sorry, tools: [find_order] }
flows:
  - { id: sizes, type: keyword, keywords: [size], workflow: sizes }
timers:
  - { delay: 5m, message: "Still there?" }
  - { delay: 10m, message: Bye, action: close_conversation }
options: { on_new_message: queue, max_iterations: 5, greet_once: true }
"""


def yaml(text: str) -> str:
    return f"sop: Ask.\n{text}"


# Recognising


def test_a_bot_is_found_by_its_file_and_by_its_folder(tmp_path: Path) -> None:
    for name in ("bot.yaml", "bot.yml", "bot.json"):
        path = write(tmp_path / name[4:], "{}", name)
        assert READER.find(path) == READER.find(path.parent) == path
    assert READER.find(tmp_path) is None
    assert READER.find(tmp_path / "gone.yaml") is None


@pytest.mark.parametrize(
    "text",
    [
        "name: x\nstates: []\nagents: []\ntools: [endpoint]\nsystem_tools: []\n",
        "name: x\nstages:\n  - name: a\n    tools: [b]\nskills: {condition: x}\n",
        "hello: world\ntools: []\n",
        '{"stages": [{"stage_id": "x"}], "sop": "x", "name": "y"}',
        "skills: [a]\n",
    ],
)
def test_what_others_read_is_not_a_bot(tmp_path: Path, text: str) -> None:
    for name in ("any.yaml", "any.json"):
        assert READER.find(write(tmp_path, text, name)) is None


def test_no_reader_takes_the_definitions_of_another(tmp_path: Path) -> None:
    examples = Path(__file__).parents[3] / "examples"
    for found in find_all(OTHERS, str(examples)):
        assert READER.find(found.path) is None or found.path.is_dir(), found.path
        assert locate(ALL, str(found.path)).reader is found.reader
    (tmp_path / "bot" / "roles").mkdir(parents=True)
    (tmp_path / "bot" / "memory" / "prompts").mkdir(parents=True)
    path = write(tmp_path / "bot", SEED, "bot.yaml")
    assert locate(ALL, str(path.parent)).reader is READER
    write(tmp_path / "bot", "name: x", "workflow.yaml")
    assert locate(ALL, str(path.parent)).reader.style == "graph"
    assert locate(ALL, str(path)).reader is READER


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("shop/bot.yaml", "shop"),
        ("my shop/bot.json", "my-shop"),
        ("商店/bot.yaml", "商店"),
        ("x/173_sop.v2.json", "173_sop-v2"),
        ("a:b/bot.yaml", "a-b"),
        ("x/--.json", "bot"),
        (f"{'long' * 50}/bot.yaml", ("long" * 50)[:64]),
    ],
)
def test_the_workflow_is_called_like_its_file_or_folder(path: str, name: str) -> None:
    assert workflow_id(Path("/tmp") / path) == name


# The whole


@pytest.mark.req("S2-68", "S2-70")
def test_the_seeds_form_is_read_whole(tmp_path: Path) -> None:
    bot = bot_of(tmp_path / "shop", SEED, "bot.yaml")
    assert bot.name == "shop" and bot.hash == config_hash(bot.config) and bot.unknown == ()
    assert bot.greeting == "Hello!" and bot.config["name"] == "Mina"
    (tool,) = bot.tools
    assert tool == BotTool(
        "find_order",
        "Finds an order",
        {"type": "object", "properties": {"id": {"type": "string"}}},
        Endpoint("https://shop.example/orders/{id}", timeout=5.0),
    )
    assert bot.skills[0].id == "late" and bot.skills[0].tools == ("find_order",)
    assert bot.flows == (BotFlow("sizes", match="contains", patterns=("size",), workflow="sizes"),)
    close = BotAction("SYSTEM", "close_conversation")
    assert bot.timers == (TimerRule(300.0, "Still there?"), TimerRule(600.0, "Bye", close))
    assert (bot.on_new_message, bot.max_iterations, bot.greet_once) == ("queue", 5, True)
    assert READER.check(tmp_path / "shop" / "bot.yaml", Environment()) == []


def test_a_field_that_is_not_known_is_kept_and_said(tmp_path: Path) -> None:
    text = yaml(
        "tooons: [x]\nmood: {a: 1}\nbasic_settings: {mood: good}\ntools:\n  - {name: t, description: d, colour: red}\n"
    )
    bot = bot_of(tmp_path, text, "bot.yaml")
    assert bot.unknown == ("tooons", "mood", "tools[0].colour", "basic_settings.mood")
    assert bot.config["mood"] == {"a": 1} and bot.config["tools"][0]["colour"] == "red"
    found = problems(tmp_path, text, "bot.yaml")
    assert [(one.place.line, one.place.column) for one in found] == [(2, 1), (3, 1), (4, 18), (6, 31)]
    assert all("kept, and passed to the planner" in one.text for one in found)
    assert found[0].hint == "did you mean 'tools'?"


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("", 1, 1, "the file is empty"),
        ("# nothing\n", 1, 1, "the file is empty"),
        ("{}", 1, 1, "the file is empty"),
        ("- a\n- b\n", 1, 1, "a bot must be a mapping, but this is a list"),
        ("just text", 1, 1, "a bot must be a mapping, but this is text"),
        ("sop: a\nsop: b\n", 2, 1, "the key 'sop' is already in line 1"),
        ("sop: a\nx: 1e999\n", 2, 4, "the number is too large"),
        ("sop: [a\n", 2, 1, "is never closed"),
        ("timers: [{delay: 30 minutes, message: Still there?}]\n", 1, 50, "a text that holds '?' needs quotes"),
        (f"sop: {'[' * 60}{']' * 60}", 1, 46, "nested more than"),
    ],
)
def test_a_file_that_cannot_be_a_bot_is_refused_with_its_place(
    tmp_path: Path, text: str, line: int, column: int, words: str
) -> None:
    found = problems(tmp_path, text, "bot.yaml")
    assert words in found[0].text, said(found)
    assert (found[0].place.line, found[0].place.column) == (line, column)


def test_wrong_encodings_and_huge_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "bot.yaml").write_bytes("sop: 你好".encode("gb18030"))
    assert "this is not UTF-8 text" in said(READER.check(tmp_path / "bot.yaml", Environment()))
    (tmp_path / "bot.yaml").write_bytes(b"\xff\xfes\x00")
    assert "this is not UTF-8 text" in said(READER.check(tmp_path / "bot.yaml", Environment()))
    with (tmp_path / "bot.yaml").open("wb") as file:
        file.truncate(10**10)
    assert "at most 500000 are read" in said(READER.check(tmp_path / "bot.yaml", Environment()))


def test_aliases_that_unfold_to_endless_text_are_refused(tmp_path: Path) -> None:
    text = f"sop: &a {'x' * 100_000}\nlong: [{', '.join(['*a'] * 1000)}]\n"
    assert "at most 1,000,000 can be" in said(problems(tmp_path, text, "bot.yaml"))


def test_a_bot_with_nothing_to_go_by_is_a_warning(tmp_path: Path) -> None:
    assert "neither a procedure nor skills" in said(problems(tmp_path, {"name": "Mina"}))


# Tools and endpoints


@pytest.mark.parametrize(
    "tools",
    [
        "tools: [find]",
        "tools: find",
        "tools: {find: {description: d}}",
        "tools: {name: find, description: d}",
        "tools: [{type: function, function: {name: find, description: d, parameters: {}}}]",
        "agent_actions: [find]",
        "agent_actions: {name: find, description: d}",
    ],
)
def test_a_tool_can_be_written_in_many_ways(tmp_path: Path, tools: str) -> None:
    bot = bot_of(tmp_path, yaml(tools), "bot.yaml")
    assert [(one.name, one.system) for one in bot.tools] == [("find", False)] and bot.unknown == ()


@pytest.mark.parametrize(
    "parameters",
    [
        {"type": "object", "properties": {"id": {"type": "string"}}},
        {"id": {"type": "string"}},
        {"id": "string"},
        [{"name": "id", "type": "string"}],
    ],
)
def test_parameters_become_a_json_schema(tmp_path: Path, parameters: Any) -> None:
    bot = bot_of(tmp_path, {"sop": "x", "tools": [{"name": "t", "parameters": parameters}]})
    assert bot.tools[0].parameters == {"type": "object", "properties": {"id": {"type": "string"}}}


@pytest.mark.parametrize(
    ("name", "purpose"),
    [
        ("handoff", "handoff"),
        ("transferToHuman", "handoff"),
        ("转人工", "handoff"),
        ("end-chat", "close_conversation"),
        ("update_profile", "update_profile"),
        ("upsert_contact", ""),
        ("transfer_money", ""),
        ("handoff_report", ""),
    ],
)
@pytest.mark.req("S2-31", "S2-32", "S2-33")
def test_a_name_can_be_that_of_a_built_in_action(tmp_path: Path, name: str, purpose: str) -> None:
    (tool,) = bot_of(tmp_path, {"sop": "x", "tools": [name]}).tools
    assert (tool.purpose, tool.system) == (purpose, bool(purpose))


def test_a_tool_can_say_its_purpose_itself(tmp_path: Path) -> None:
    tools = [{"name": "bye", "purpose": "close_conversation"}, {"name": "handoff", "purpose": ""}]
    bot = bot_of(tmp_path, {"sop": "x", "tools": tools})
    assert [(one.name, one.purpose, one.system) for one in bot.tools] == [
        ("bye", "close_conversation", True),
        ("handoff", "", False),
    ]
    assert "did you mean 'handoff'" in said(
        problems(tmp_path, {"sop": "x", "tools": [{"name": "x", "purpose": "handof"}]})
    )


def test_system_actions_need_not_be_declared(tmp_path: Path) -> None:
    config = {"sop": "x", "system_actions": ["hand_off", "tag"], "tools": ["tags"]}
    bot = bot_of(tmp_path, config)
    assert [(one.name, one.system, one.purpose) for one in bot.tools] == [
        ("tags", False, ""),
        ("hand_off", True, "handoff"),
        ("tag", True, ""),
    ]
    found = problems(tmp_path, config, tools=("tags",))
    assert "did you mean 'tags'?" in said(found) and "'hand_off'" not in said(found)


def test_a_tool_without_endpoint_is_looked_up_here(tmp_path: Path) -> None:
    config = {"sop": "x", "tools": [{"name": "find_order", "description": "d"}]}
    assert problems(tmp_path, config, tools=("find_order",)) == []
    (found,) = problems(tmp_path, config, tools=("find_orders",))
    assert (found.severity, found.hint) == ("warning", "did you mean 'find_orders'?")


@pytest.mark.parametrize(
    ("endpoint", "severity", "words"),
    [
        ({"url": "/relative"}, "warning", "not an absolute http(s) URL"),
        ({"url": "file:///etc/passwd"}, "warning", "not an absolute http(s) URL"),
        ({"url": "https://"}, "warning", "does not name a host"),
        ({"url": ""}, "warning", "has no 'url'"),
        ({}, "warning", "has no 'url'"),
        ({"url": "https://{id}/x"}, "error", "a placeholder chooses the host"),
        ({"url": "https://#host#/x"}, "error", "a placeholder chooses the host"),
        ({"url": "https://shop.example:{id}/"}, "error", "a placeholder chooses the host"),
        ({"url": "https://me:secret@shop.example/"}, "error", "a user name or a password"),
        ({"url": "https://shop.example/\nx"}, "error", "one line"),
        ({"url": "https://shop.example/", "method": "STEAL"}, "error", "there is no method 'STEAL'"),
        ({"url": "https://shop.example/", "effect": "safe"}, "error", "there is no effect 'safe'"),
        ({"url": "https://shop.example/", "effect": "unsafe"}, "warning", "GET changes nothing"),
        ({"url": "https://shop.example/", "method": "post", "effect": "pure"}, "warning", "is repeated"),
        ({"url": "https://shop.example/", "timeout": 0}, "error", "'timeout' must be"),
        ({"url": "https://shop.example/", "timeout": 9999}, "error", "'timeout' must be"),
        ({"url": "https://shop.example/", "headers": {"A\r\nB": "x"}}, "error", "cannot be a header"),
        ({"url": "https://shop.example/", "headers": {"A": "x\r\nB: y"}}, "error", "cannot be a header"),
        ({"url": "https://shop.example/", "headers": {"X-Api-Key": "abc"}}, "warning", "looks like a secret"),
        ({"url": "http://shop.example/", "headers": {"Authorization": "Bearer ${KEY}"}}, "warning", "not encrypted"),
        ({"url": "https://shop.example/?k=${KEY}"}, "warning", "secrets go into headers only"),
        ({"url": "https://shop.example/", "method": "PUT", "body": {"k": ["${KEY}"]}}, "warning", "headers only"),
        ({"url": "https://shop.example/", "body": {"a": 1}}, "warning", "so it is GET"),
        ({"url": "https://shop.example/", "retries": 3}, "warning", "'tools[0].endpoint.retries' is not a field"),
        ({"url": "https://shop.example/{id}/{other}"}, "warning", "no parameter provides {other}"),
    ],
)
def test_what_is_wrong_with_an_endpoint_is_said(
    tmp_path: Path, endpoint: dict[str, Any], severity: str, words: str
) -> None:
    tool = {"name": "t", "description": "d", "endpoint": endpoint, "parameters": {"id": {"type": "string"}}}
    found = problems(tmp_path, {"sop": "x", "tools": [tool]})
    assert [one.severity for one in found] == [severity] and words in found[0].text, said(found)


def test_endpoints_in_other_shapes_are_understood(tmp_path: Path) -> None:
    url = "https://shop.example/a"
    headers = [{"key": "A", "value": 1}, {"name": "B", "value": "${KEY}"}]
    tools = [
        {"name": "text", "endpoint": url},
        {"name": "flat", "url": url, "method": "delete"},
        {"name": "listed", "endpoint": {"url": url, "headers": headers, "timeout": "2.5"}},
        {"name": "keyed", "effect": "keyed", "endpoint": {"url": url, "method": "POST"}},
        {"name": "none", "endpoint": None},
    ]
    found = {one.name: one.endpoint for one in bot_of(tmp_path, {"sop": "x", "tools": tools}).tools}
    assert found == {
        "text": Endpoint(url),
        "flat": Endpoint(url, "DELETE"),
        "listed": Endpoint(url, headers={"A": "1", "B": "${KEY}"}, timeout=2.5),
        "keyed": Endpoint(url, "POST", effect="keyed"),
        "none": None,
    }


def test_two_tools_of_one_name_are_an_error(tmp_path: Path) -> None:
    found = problems(tmp_path, yaml("tools: [a]\nsystem_tools:\n  - name: a\n"), "bot.yaml")
    assert [(one.severity, one.place.line, one.place.column) for one in found][:1] == [("error", 4, 11)]
    assert "there is a tool 'a' already" in found[0].text


@pytest.mark.parametrize("name", ["x" * 101, "a\nb", "a\x1b[31mb"])
def test_a_name_that_would_break_a_line_is_refused(tmp_path: Path, name: str) -> None:
    for config in ({"tools": [name]}, {"skills": [{"id": name.replace("\n", "\x00")}]}, {"system_actions": [name]}):
        found = problems(tmp_path, {"sop": "x", **config})
        assert any("cannot be the name" in one.text and one.severity == "error" for one in found), config
        assert "\x1b" not in said(found)


# Skills


def test_skills_in_other_shapes_are_understood(tmp_path: Path) -> None:
    skills = [
        "Say sorry",
        {"name": "Late", "condition": ["It is late", "or lost"], "tools": "a, b"},
        {"action_id": "x", "action": "Do it", "tool": "a"},
        {"name": "Late", "condition": "It is early", "tools": [{"name": "b"}]},
        None,
    ]
    bot = bot_of(tmp_path, {"sop": "x", "tools": ["a", "b"], "actionBooks": skills})
    assert [(one.id, one.condition, one.action, one.tools) for one in bot.skills] == [
        ("skill_1", "", "Say sorry", ()),
        ("Late", "It is late\nor lost", "", ("a", "b")),
        ("x", "", "Do it", ("a",)),
        ("Late_2", "It is early", "", ("b",)),
    ]
    found = said(problems(tmp_path, {"sop": "x", "tools": ["a", "b"], "actionBooks": skills}))
    assert "has no condition" in found and "so this one is called 'Late_2'" in found


# Flows


@pytest.mark.parametrize(
    ("flow", "match", "patterns"),
    [
        ({"type": "intent", "match_type": "exact", "trigger_patterns": ["a, b"]}, "intent", ("a, b",)),
        ({"type": "keyword", "trigger_patterns": ["a, b"]}, "contains", ("a, b",)),
        ({"type": "keyword", "keywords": "退款，退货"}, "contains", ("退款", "退货")),
        ({"match_type": "exact", "trigger": "hello"}, "exact", ("hello",)),
        ({"keywords": ["a", "", None, "a", 5]}, "contains", ("a", "5")),
        ({"trigger_patterns": "when it rains, or snows"}, "intent", ("when it rains, or snows",)),
        ({"type": "keyword", "matchType": "regex", "triggerPatterns": [r"^order\s+\d+"]}, "regex", (r"^order\s+\d+",)),
        ({"type": "keyword", "match_type": "similar", "keywords": ["a"]}, "intent", ("a",)),
        ({"type": "odd", "keywords": ["a"]}, "intent", ("a",)),
    ],
)
def test_how_a_flow_starts(tmp_path: Path, flow: dict[str, Any], match: str, patterns: tuple[str, ...]) -> None:
    (found,) = bot_of(tmp_path, {"sop": "x", "flows": [{"flow_id": 7, "workflow": "w", **flow}]}).flows
    assert (found.id, found.match, found.patterns) == ("7", match, patterns)


@pytest.mark.parametrize(
    ("flow", "words"),
    [
        ({"id": "a"}, "nothing can run the flow 'a'"),
        ({"id": "a", "tool": "t", "workflow": "w"}, "only its workflow is used"),
        ({"id": "a", "tool": "t", "type": "keyword"}, "does not say when it starts"),
        ({"id": "a", "tool": "t", "keywords": ["x", " "]}, "would match every message"),
        ({"id": "a", "tool": "t", "type": "keyword", "match_type": "fuzzy", "keywords": ["x"]}, "the model decides"),
    ],
)
def test_what_an_author_should_know_about_a_flow(tmp_path: Path, flow: dict[str, Any], words: str) -> None:
    found = problems(tmp_path, {"sop": "x", "flows": [flow]})
    assert words in said(found) and {one.severity for one in found} == {"warning"}


def test_a_pattern_of_two_flows_starts_the_first(tmp_path: Path) -> None:
    flows = [{"id": id, "tool": "t", "keywords": ["size"]} for id in ("a", "b")]
    assert "starts the flow 'a', never 'b'" in said(problems(tmp_path, {"sop": "x", "flows": flows}))


def test_a_workflow_that_a_flow_names_is_looked_up(tmp_path: Path) -> None:
    flow = {"id": "a", "keywords": ["x"], "workflow": "sizes"}
    (found,) = problems(tmp_path, {"sop": "x", "flows": [flow]}, about_workflow=lambda name: f"no {name}")
    assert (found.severity, found.text) == ("error", "no sizes")


# Timers


@pytest.mark.parametrize("delay", [300, "300", "5m", "5 minutes", "300s", "5 分钟", 300.0])
def test_a_delay_can_be_written_in_many_ways(tmp_path: Path, delay: Any) -> None:
    (timer,) = bot_of(tmp_path, {"sop": "x", "timers": [{"delay": delay, "message": "?"}]}).timers
    assert timer.delay == 300.0


@pytest.mark.parametrize("delay", [0, -5, 367 * 86_400, "400 days", 10**30])
def test_a_delay_out_of_bounds_is_an_error(tmp_path: Path, delay: Any) -> None:
    (found,) = problems(tmp_path, yaml(f"timers:\n  - {{delay: {delay}, message: x}}\n"), "bot.yaml")
    assert (found.severity, found.place.line, found.place.column) == ("error", 3, 13)


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("close_conversation", BotAction("SYSTEM", "close_conversation")),
        ("closeConversation", BotAction("SYSTEM", "close_conversation")),
        ("find", BotAction("TOOL", "find")),
        ({"type": "tool", "target": "find", "params": {"a": 1}}, BotAction("TOOL", "find", {"a": 1})),
        ({"type": "TOOL", "target": "handoff"}, BotAction("SYSTEM", "handoff")),
        ({"name": "sizes"}, BotAction("FLOW", "sizes")),
        ("Say goodbye and go", None),
    ],
)
@pytest.mark.req("S2-67")
def test_the_action_of_a_timer_is_resolved(tmp_path: Path, action: Any, expected: BotAction | None) -> None:
    config = {
        "sop": "x",
        "tools": [{"name": "find", "description": "d"}],
        "flows": [{"id": "sizes", "workflow": "w", "keywords": ["s"]}],
        "timers": [{"delay": 5, "message": "?", "action": action}],
    }
    bot = bot_of(tmp_path, config)
    assert bot.timers[0].action == expected
    assert bool(problems(tmp_path, config)) == (expected is None)
    assert bot.unknown == (() if expected else ("timers[0].action",))


def test_timers_in_prose_are_left_to_the_planner(tmp_path: Path) -> None:
    for timers in ("After 5 minutes ask, then close.", ["After 5 minutes ask."], [{"when": "later", "message": "x"}]):
        bot = bot_of(tmp_path, {"sop": "x", "timers": timers})
        assert bot.timers == () and bot.config["timers"] == timers and bot.unknown


def test_too_many_timers_are_an_error(tmp_path: Path) -> None:
    found = problems(tmp_path, {"sop": "x", "timers": [{"delay": n + 1, "message": "x"} for n in range(21)]})
    assert "there are 21 timers; at most 20 can be" in said(found)


# Options


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("max_iterations: 0", "from 1 to 100"),
        ("max_iterations: many", "must be a whole number"),
        ("on_new_message: drop", "there is no on_new_message 'drop'"),
        ("passages: 21", "from 1 to 20"),
        ("greet_once: maybe", "must be true or false"),
        (f"fixed_variables: [{'x' * 101}]", "cannot be the name of a variable"),
        (f"fixed_variables: [{', '.join(f'v{n}' for n in range(101))}]", "at most 100 can be"),
        ("greet_once: true\noptions: {greet_once: true}", "is at the top of the file as well"),
        ("knowledge: nowhere", "there is no folder 'nowhere'"),
        ("knowledge: ../other", "must be a folder beside this file"),
        ("knowledge: /etc", "must be a folder beside this file"),
        ("knowledge: link", "is a symbolic link"),
        (f"apology: {'x' * 4001}", "at most 4000 can be"),
    ],
)
def test_an_option_that_cannot_be_is_an_error(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "link").symlink_to("/etc")
    found = problems(tmp_path, yaml(text), "bot.yaml")
    assert found[0].severity == "error" and words in found[0].text, said(found)


def test_options_at_the_top_or_below_options_are_the_same(tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    options = "max_iterations: '7'\nknowledge: ./kb/\nmodel: local\nhandoff_to: shop\napology: Oh no\npassages: 2\n"
    below = "options:\n" + "".join(f"  {line}\n" for line in options.splitlines())
    for text in (options, below):
        bot = bot_of(tmp_path, yaml(text), "bot.yaml")
        assert (bot.max_iterations, bot.passages, bot.model, bot.handoff_to) == (7, 2, "local", "shop")
        assert bot.knowledge == os.path.realpath(tmp_path / "kb") and bot.apology == "Oh no"


# Pinned


def _bot(tmp_path: Path) -> Bot:
    return bot_of(tmp_path / "shop", SEED, "bot.yaml")


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "../x"},
        {"name": ""},
        {"hash": "0" * 32},
        {"config": {}},
        {"max_iterations": 0},
        {"passages": 1000},
        {"generation": 0},
        {"knowledge": "relative"},
        {"handoff_to": "a\nb"},
        {"tools": (BotTool("a"), BotTool("a"))},
        {"tools": (BotTool("x" * 200),)},
        {"tools": (BotTool("a", endpoint=Endpoint("https://{host}/")),)},
        {"tools": (BotTool("a", endpoint=Endpoint("https://a.example", "STEAL")),)},
        {"tools": (BotTool("a", endpoint=Endpoint("https://a.example", headers={"A": "b\r\nc"})),)},
        {"tools": (BotTool("a", endpoint=Endpoint("https://a.example", timeout=-1.0)),)},
        {"flows": (BotFlow("a", match="regex", patterns=("(a+)+",), tool="t"),)},
        {"timers": (TimerRule(-1.0, "x"),)},
        {"timers": (TimerRule(1.0, "x", max_triggers=-1),)},
    ],
)
def test_a_pinned_bot_that_no_file_could_be_is_refused(tmp_path: Path, changed: dict[str, Any]) -> None:
    with pytest.raises(WrongDefinition):
        READER.check_pinned(replace(_bot(tmp_path), **changed))


WRONG_OPTIONS: dict[str, Any] = {
    "on_new_message": 7,
    "max_iterations": 0,
    "max_failed_plans": 0,
    "apology": "x" * (LONGEST_MESSAGE + 1),
    "checking": "x" * (LONGEST_MESSAGE + 1),
    "handover": "x" * (LONGEST_MESSAGE + 1),
    "greet_once": "perhaps",
    "fixed_variables": ("x" * 200,),
    "handoff_to": "a\nb",
    "knowledge": "relative",
    "passages": 1000,
}
"""A value for each option that no file could have."""
ANY_TEXT = ("model",)
"""Options that can be any text."""


@pytest.mark.parametrize("name", [name for name in OPTIONS if name not in ANY_TEXT])
def test_every_option_of_a_pinned_bot_is_checked(tmp_path: Path, name: str) -> None:
    with pytest.raises(WrongDefinition):
        READER.check_pinned(replace(_bot(tmp_path), **{name: WRONG_OPTIONS[name]}))


def test_every_option_is_read_into_a_field_of_its_name() -> None:
    assert set(read_options(BotFields([]), {}, None, DefaultTexts())) == set(OPTIONS) <= set(Bot.__struct_fields__)


def test_a_pinned_bot_may_be_a_later_generation(tmp_path: Path) -> None:
    READER.check_pinned(replace(_bot(tmp_path), generation=3))


def test_a_yaml_bot_and_a_json_bot_are_the_same(tmp_path: Path) -> None:
    bot = _bot(tmp_path)
    again = read(write(tmp_path / "other" / "shop", bot.config, "bot.json"))
    assert again == bot


def test_the_bot_of_the_page_checks_clean(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "conversations.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(name: Mina.*?)```", page, re.DOTALL)
    (tmp_path / "knowledge").mkdir()
    (tmp_path / "procedure.md").write_text("Ask.")
    assert problems(tmp_path, text, "bot.yaml", tools=("request_refund",)) == []


@pytest.mark.parametrize(
    ("config", "is_chinese"),
    [
        ({"sop": "您好，请先询问订单号，再调用 order_status。"}, True),
        ({"sop": "Ask for the order."}, False),
        ({"sop": "Ask for the order.", "language": "中文"}, True),
        ({"basicSettings": {"instruction": "询问订单号。", "language": "zh-CN"}}, True),
        ({"sop": "询问订单号。", "language": "English"}, False),
        ({"sop": "注文番号を聞いてください。"}, False),
        ({"greeting": "欢迎光临！", "sop": "Ask for the order number."}, True),
        ({"sop": ["询问订单号。", "查询订单。"]}, True),
        ({"sop": "询问订单号。", "language": ["en"]}, False),
        ({"sop": "Ask.", "language": {"code": "zh-CN"}}, True),
        ({"sop": "Ask.", "language": "繁體"}, True),
        ({"name": "Bot", "skills": [{"id": "late", "condition": "订单迟到了。", "action": "道歉一次。"}]}, True),
        ({"name": "小美", "timers": [{"delay": 5, "message": "Are you there?"}]}, False),
    ],
)
def test_a_bot_apologises_in_its_own_language(tmp_path: Path, config: dict[str, Any], is_chinese: bool) -> None:
    bot = bot_of(tmp_path, config)
    for text in (bot.apology, bot.checking, bot.handover):
        assert any("\u4e00" <= one <= "\u9fff" for one in text) is is_chinese
    assert bot_of(tmp_path, {**config, "options": {"apology": "Oh."}}).apology == "Oh."


def test_a_delay_can_have_several_parts(tmp_path: Path) -> None:
    config = {
        "sop": "Help.",
        "timers": [{"delay": "1h30m", "message": "Hm?"}, {"delay": "1小时30分钟", "message": "嗯？"}],
    }
    assert [timer.delay for timer in bot_of(tmp_path, config).timers] == [5400.0, 5400.0]
