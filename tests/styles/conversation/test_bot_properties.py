"""Whatever a configuration holds: it is read or refused, and nothing of it is lost."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ripstop.definitions.problems import WrongDefinition
from ripstop.definitions.reader import Environment
from ripstop.styles.conversation.bot_fields import inner
from ripstop.styles.conversation.configuration import snake
from ripstop.styles.conversation.definition import Bot, config_hash
from ripstop.styles.conversation.reader import READER
from ripstop.styles.conversation.schema import BOT, DESCRIBED, ENDPOINT, OPTIONS
from tests.styles.conversation.bots import first_form, second_form, write
from tests.styles.graph.test_graph_schema import accepts

HERE = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
KEYS = st.sampled_from(
    sorted({*BOT["properties"], *DESCRIBED, *OPTIONS, *ENDPOINT["properties"], "id", "flow_id", "condition", "endpoint",
            "type", "patterns", "delay", "message", "action", "target", "params", "purpose", "parameters", "x y"})
)  # fmt: skip
TEXTS = st.sampled_from(
    ["", "a", "5m", "x.md", "./gone.md", "handoff", "https://a.example/{b}", "SYSTEM", "regex", "(a+)+", "keyword",
     "退款", "${KEY}", "a\nb", "a, b", "true", "12", "\u202e"]
) | st.text(max_size=8)  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
TREES = st.recursive(
    SCALARS,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(KEYS | st.text(max_size=3), below, max_size=4),
    max_leaves=25,
)
CONFIGS = st.dictionaries(KEYS, TREES, min_size=1, max_size=6)


@HERE
@given(config=CONFIGS | TREES)
def test_any_json_is_read_or_refused(tmp_path: Path, config: Any) -> None:
    _read_or_refused(tmp_path, config, "bot.json", json.dumps(config, ensure_ascii=False))


@HERE
@given(config=CONFIGS)
def test_any_yaml_is_read_or_refused(tmp_path: Path, config: Any) -> None:
    _read_or_refused(tmp_path, None, "bot.yaml", yaml.safe_dump(config, allow_unicode=True))


@HERE
@given(text=st.text(max_size=200))
def test_any_text_is_read_or_refused(tmp_path: Path, text: str) -> None:
    for name in ("bot.json", "bot.yaml", "any.json", "any.yaml"):
        path = write(tmp_path, text.encode("utf-8", "replace").decode(), name)
        READER.find(path)
        _read_or_refused(tmp_path, None, name, path.read_text(encoding="utf-8"))


def _read_or_refused(folder: Path, config: Any, name: str, text: str) -> None:
    path = write(folder, text, name)
    found = READER.check(path, Environment(tools=()))
    try:
        content = READER.read(path, Environment())[1]
    except WrongDefinition as error:
        assert any(one.severity == "error" for one in found), error
        return
    assert all(one.severity == "warning" and one.place.line >= 1 for one in found)
    bot = msgspec.json.decode(content, type=Bot)
    assert bot.hash == config_hash(bot.config)
    if config is not None and not (folder / "x.md").exists():
        assert bot.config == config, "nothing is lost"
    READER.check_pinned(bot)


VALUES = SCALARS.filter(lambda one: not str(one).startswith("./"))
EXTRA = st.text(alphabet="qzjx", min_size=3, max_size=6).map("zz_".__add__)


@HERE
@given(form=st.sampled_from([first_form, second_form]), extra=EXTRA, value=VALUES, data=st.data())
def test_a_field_is_understood_or_listed_as_unknown(
    tmp_path: Path, form: Any, extra: str, value: Any, data: st.DataObject
) -> None:
    (tmp_path / "procedure.md").write_text("Ask.")
    config = form()
    places = list(_mappings(config, ""))
    path, mapping = data.draw(st.sampled_from(places))
    mapping[extra] = value
    bot = msgspec.json.decode(READER.read(write(tmp_path, config), Environment())[1], type=Bot)
    assert inner(path, extra) in bot.unknown
    at: Any = bot.config
    for step in path.replace("[", ".").replace("]", "").split(".") if path else []:
        at = at[int(step)] if isinstance(at, list) else at[step]
    assert at[extra] == value


def _mappings(value: Any, path: str) -> Any:
    """Every mapping whose fields the engine reads, with its path."""
    if isinstance(value, dict):
        yield path, value
        for key, below in value.items():
            if key not in ("parameters", "headers", "body"):
                yield from _mappings(below, inner(path, key))
    elif isinstance(value, list):
        for number, below in enumerate(value):
            yield from _mappings(below, f"{path}[{number}]")


def test_the_schema_takes_what_the_reader_takes() -> None:
    assert json.loads(msgspec.json.encode(READER.schema())) == READER.schema()
    for config in (first_form(), second_form()):
        assert accepts(READER.schema(), config)
    assert not accepts(READER.schema(), {"max_iterations": 0})


@pytest.mark.parametrize(
    ("key", "meant"), [("flowId", "flow_id"), ("flow-id", "flow_id"), ("actionBooks", "action_books"), ("URL", "url")]
)
def test_keys_in_other_spellings_mean_the_same(key: str, meant: str) -> None:
    assert snake(key) == meant
