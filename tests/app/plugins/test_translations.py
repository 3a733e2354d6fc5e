"""What styles say has a translation beside the style; what agents and people say is left as it is."""

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import msgspec
import pytest

from ripstop.app.plugin import Plugin
from ripstop.app.plugins import BUILT_IN, KERNEL_TEXTS, Plugins, imported
from ripstop.kernel import restoring
from ripstop.kernel.doubts import DOUBT_CHOICES
from ripstop.kernel.effects import AskPerson, Field
from ripstop.kernel.errors import UsageError
from ripstop.kernel.events import GuardTripped
from ripstop.kernel.parts import Facts, Ledger, Rail
from ripstop.kernel.resuming import question_about_verdict
from ripstop.kernel.style import Sample, StyleKit
from ripstop.styles.conversation import passes
from ripstop.styles.handoff.transitions import TRANSITIONS
from ripstop.styles.pipeline import flow
from ripstop.testing import Given
from ripstop.text.translation import PLACE, names_in
from tests.app.plugins import broken
from tests.app.plugins.test_kits import steps
from tests.toy_style import PLUGIN

PLUGINS = Plugins([*BUILT_IN, PLUGIN])
CHINESE = PLUGINS.translation("zh")
SAMPLES = [(kit, sample) for kit in PLUGINS.kits for sample in (kit.samples() if kit.samples else ())]
LABELS = {
    *DOUBT_CHOICES.values(),
    *restoring.CHOICES.values(),
    restoring.GO_ON_LABEL,
    *passes.CHOICES.values(),
    *flow.CHOICES.values(),
    *(field.label for field in flow.FIELDS.values()),
    *(action.label for action in TRANSITIONS.values()),
    *(action.confirm for action in TRANSITIONS.values() if action.confirm),
    *(field.label for action in TRANSITIONS.values() for field in action.fields.values()),
}
"""Labels that no sample may come to."""


def texts_of(target: str) -> dict[str, str]:
    package, _, name = target.partition(":")
    return msgspec.json.decode((files(package) / f"{name}.zh.json").read_bytes(), type=dict[str, str])


TEXTS = {target: texts_of(target) for target in (KERNEL_TEXTS, *(plugin.texts for plugin in PLUGINS.all))}


def said_now(kit: StyleKit, story: Given) -> Iterator[str]:
    """What a page shows of a run in its style's own words."""
    run = story.run
    assert run is not None
    yield kit.style.view.picture(run).progress
    for action in kit.style.people.actions(run):
        yield from (action.label, action.confirm, *labels(action.fields))
    for opened in run.open.values():
        if isinstance(ask := opened.command, AskPerson):
            yield from (ask.question or ask.title, *(label or name for name, label in ask.choices.items()))
            yield from labels(ask.fields)
    for part in kit.style.view.parts(run):
        match part:
            case Facts(rows=rows, title=title):
                yield from (title, *(name for name, _ in rows))
            case Ledger(title=title):
                yield title
            case Rail(stages=stages):
                yield from (stage.note for stage in stages)


def labels(fields: dict[str, Field]) -> Iterator[str]:
    return (field.label or name for name, field in fields.items())


@pytest.mark.parametrize(("kit", "sample"), SAMPLES, ids=lambda one: one.name)
def test_everything_that_a_style_says_is_known_in_chinese(kit: StyleKit, sample: Sample) -> None:
    given = msgspec.json.encode(sample).decode()
    missing = {
        text
        for story in steps(kit, sample)
        for text in said_now(kit, story)
        if text and story.run_id not in text and CHINESE.of(text) == text and not by_others(text, given)
    }
    assert missing == set()


def by_others(text: str, given: str) -> bool:
    """Whether the author of a definition, an agent or a person wrote it."""
    return re.search(rf"(?<!\w){re.escape(msgspec.json.encode(text).decode()[1:-1])}(?!\w)", given) is not None


@pytest.mark.parametrize("label", sorted(LABELS))
def test_every_label_is_known_in_chinese(label: str) -> None:
    assert CHINESE.of(label) != label
    assert PLUGINS.translation("en").of(label) == label


def test_the_question_about_a_verdict_is_known_in_chinese() -> None:
    ask = question_about_verdict(GuardTripped(guard="turns", text="It has taken 5 turns.", limit=5, value=5))
    said = [*(label or choice for choice, label in ask.choices.items()), *labels(ask.fields)]
    assert len(said) == 3 and all(CHINESE.of(text) != text for text in said)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Review the draft of the stage 'Requirements'.", "请审阅“Requirements”阶段的草稿。"),
        ("turn 5 of at most 40", "第 5 轮，最多 40 轮"),
        (
            "Answer the user of session 's1', or give the conversation back.",
            "请回答会话“s1”的用户，或将对话交还机器人。",
        ),
        ("Decisions of {0}", "{0} 的决定"),
        ("an agent's own words", "an agent's own words"),
    ],
)
def test_sentences_of_styles_are_known_with_what_they_name(said: str, told: str) -> None:
    assert CHINESE.of(said) == told


@pytest.mark.parametrize("target", TEXTS)
def test_a_translation_fills_in_what_the_sentence_names_and_is_not_empty(target: str) -> None:
    texts = TEXTS[target]
    # the person who has a conversation need not be named to the one who is asked
    left_out = {key: names_in(key) - names_in(text) for key, text in texts.items()}
    assert {name for names in left_out.values() for name in names} <= {"person"}
    assert all(text.strip() for text in texts.values())


def test_two_authors_of_one_sentence_agree_on_its_translation() -> None:
    found: dict[str, str] = {}
    for texts in TEXTS.values():
        assert {key: text for key, text in texts.items() if found.get(key, text) != text} == {}
        found |= texts


@pytest.mark.parametrize("target", TEXTS)
def test_no_translation_is_left_over_from_a_sentence_that_nobody_says(target: str) -> None:
    folder = Path(str(files(target.partition(":")[0])))
    source = "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py")))
    pieces = {key: re.split(r"[\0(),]|(?<=\.) ", PLACE.sub("\0", key)) for key in TEXTS[target]}
    assert [key for key, said in pieces.items() if not all(one.strip(" ,.'?()") in source for one in said)] == []


def test_a_style_from_outside_brings_its_own_translations() -> None:
    assert CHINESE.of("2 of 3, round 1") == "第 1 轮，已完成 2/3"


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        ("tests.app.plugins.nowhere:texts", "No module named 'tests.app.plugins.nowhere'"),
        ("tests.app.plugins:wrong_texts", "has round, which the key has not"),
    ],
)
def test_translations_that_cannot_be_used_are_refused(texts: str, reason: str) -> None:
    plugin = broken.plugin("FINE", texts=texts)
    with pytest.raises(UsageError, match=f"The plug-in 'broken' cannot be used: .*{reason}"):
        Plugins([*BUILT_IN, plugin]).translation("zh")


def test_a_broken_translation_leaves_out_that_plugin_only() -> None:
    plugins = Plugins([*BUILT_IN, broken.plugin("FINE", texts="tests.app.plugins:wrong_texts")], lenient=True)
    assert plugins.translation("zh").of("Assign") == "分派"
    assert [problem.name for problem in plugins.problems] == ["broken"]


@pytest.mark.parametrize("plugin", BUILT_IN, ids=lambda one: one.name)
def test_every_style_names_its_translations(plugin: Plugin) -> None:
    """In its own package, so that they are written beside what says the sentences."""
    package = imported(plugin.kits[0]).style.__module__.rpartition(".")[0]
    assert plugin.texts == f"{package}:texts"
