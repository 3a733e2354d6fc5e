"""What styles say has a translation beside the style; what agents and people say is left as it is."""

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import msgspec
import pytest

from ripstop.app.plugin import Plugin
from ripstop.app.plugins import BUILT_IN, HISTORY_TEXTS, SHARED_TEXTS, Plugins, imported
from ripstop.history.narration import UNTOLD, told
from ripstop.kernel import budget, doubts, progress, restoring
from ripstop.kernel.doubts import DOUBT_CHOICES, IN_DOUBT
from ripstop.kernel.effects import AskPerson, CutOff, Field
from ripstop.kernel.errors import UsageError
from ripstop.kernel.events import KERNEL_EVENTS, GuardTripped, Record
from ripstop.kernel.limits import LIMITS
from ripstop.kernel.outages import OUTAGE_CHOICES, question_about_outage
from ripstop.kernel.parts import Facts, Ledger, Rail
from ripstop.kernel.resuming import question_about_verdict
from ripstop.kernel.run import WorkTime
from ripstop.kernel.style import Sample, StyleKit
from ripstop.styles.conversation import passes
from ripstop.styles.conversation.planning import NO_PLAN
from ripstop.styles.handoff.transitions import TRANSITIONS
from ripstop.styles.pipeline import flow
from ripstop.testing import Given
from ripstop.text.diagrams.diagram import Chapter
from ripstop.text.translation import PLACE, Phrase, Told, names_in
from tests.app.plugins import broken
from tests.app.plugins.test_kits import chapters_of, played, steps
from tests.toy_style import PLUGIN

PLUGINS = Plugins([*BUILT_IN, PLUGIN])
CHINESE = PLUGINS.translation("zh")
SAMPLES = [(kit, sample) for kit in PLUGINS.kits for sample in (kit.samples() if kit.samples else ())]
CHORES = "chores"
NAMES = re.compile(r"[^ ]+ → [^ ]+: |[A-Z]+: |\w+ (completed|terminated|完成任务|终止任务)")
"""Sentences of names and of what others wrote: a transition with its condition, a decision, a document's history."""
LABELS = {
    *DOUBT_CHOICES.values(),
    *restoring.CHOICES.values(),
    restoring.GO_ON_LABEL,
    *passes.CHOICES.values(),
    *flow.CHOICES.values(),
    *(field.label for field in flow.FIELDS.values()),
    *OUTAGE_CHOICES.values(),
    *(action.label for action in TRANSITIONS.values()),
    *(action.confirm for action in TRANSITIONS.values() if action.confirm),
    *(field.label for action in TRANSITIONS.values() for field in action.fields.values()),
}
"""Labels that no sample may come to."""


def texts_of(target: str) -> dict[str, str]:
    package, _, name = target.partition(":")
    return msgspec.json.decode((files(package) / f"{name}.zh.json").read_bytes(), type=dict[str, str])


TEXTS: dict[str, dict[str, str]] = {
    target: texts_of(target) for target in (*SHARED_TEXTS, HISTORY_TEXTS, *(plugin.texts for plugin in PLUGINS.all))
}

CHINESE_KEYS = {key for texts in TEXTS.values() for key in texts}


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
    for name, field in fields.items():
        yield field.label or name


def told_of(kit: StyleKit, chapters: list[Chapter]) -> Iterator[Phrase]:
    """What a page says about records in words of ripstop: each sentence and its parts, and why."""
    for number, chapter in enumerate(chapters, 1):
        yield from parts_of(told(kit.style, Record(number, 0, chapter.event), chapter.before, chapter.after))
        if chapter.before is not None:
            found = kit.style.view.explain(chapter.before.state, chapter.event).reasons
            yield from (Phrase(reason.text, kind="reason") for reason in found)


def parts_of(said: Told) -> Iterator[Phrase]:
    if isinstance(said, Phrase):
        yield said
        for _, value in said.values:
            yield from parts_of(value)


def is_known(said: Phrase) -> bool:
    """Whether Chinese has another sentence for it; one of names only is the same."""
    if said.values or (not said.kind and said.pattern in TEXTS[HISTORY_TEXTS]):
        return said.pattern in TEXTS[HISTORY_TEXTS]
    return CHINESE.of(said.pattern, said.kind) != said.pattern


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


@pytest.mark.parametrize(("kit", "sample"), SAMPLES, ids=lambda one: one.name)
def test_where_a_run_is_is_known_in_chinese(kit: StyleKit, sample: Sample) -> None:
    if kit.name == CHORES:
        pytest.skip("a style from outside has translations of what it wants")
    given = msgspec.json.encode(sample).decode()
    gists = {kit.style.view.gist(chapter.after) for chapter in chapters_of(kit, played(kit, sample))}
    english = {one for one in gists if CHINESE.of(one, "gist") == one and one not in sample_names(sample)}
    assert {one for one in english if not by_others(one, given) and not NAMES.match(one)} == set()


def sample_names(sample: Sample) -> set[str]:
    """Where a graph is, which its author has named."""
    return {state.name for state in getattr(sample.definition, "states", ())}


@pytest.mark.parametrize(("kit", "sample"), SAMPLES, ids=lambda one: one.name)
def test_every_record_and_the_reason_for_it_are_told_in_chinese(kit: StyleKit, sample: Sample) -> None:
    if kit.name == CHORES:
        pytest.skip("a style from outside has translations of what it wants")
    given = msgspec.json.encode(sample).decode()
    missing = {
        said.pattern
        for said in told_of(kit, chapters_of(kit, played(kit, sample)))
        if said.pattern and not is_known(said) and not by_others(said.pattern, given) and not NAMES.match(said.pattern)
    }
    assert missing == set()


@pytest.mark.parametrize("kit", [kit for kit in PLUGINS.kits if kit.name != CHORES], ids=lambda kit: kit.name)
def test_every_event_and_what_it_says_has_a_name_in_chinese(kit: StyleKit) -> None:
    missing = []
    for event in (*KERNEL_EVENTS, *kit.events):
        name = str(event.__struct_config__.tag).rpartition(".")[2].replace("_", " ")
        missing += [] if f"event|{name}" in CHINESE_KEYS else [name]
        if event not in KERNEL_EVENTS:
            fields = {one.replace("_", " ") for one in event.__struct_fields__ if one not in {*UNTOLD, "agent", "by"}}
            missing += [f"{name}: {one}" for one in sorted(fields) if f"field|{one}" not in CHINESE_KEYS]
    assert missing == []


GUARD = re.compile(r'guard=f?"([^"{]*)')
VERDICTS = [
    budget._over("tokens", 10, 12.5),
    budget._spent("money", 1.5, 2),
    budget.time_is_up(1.5, WorkTime()),
    progress._no_progress([progress.TurnDigest("ada", "x", n, False, False) for n in (3, 5, 7)], 1, 3),
    progress._no_progress([progress.TurnDigest(who, "x", n, False, False) for n, who in enumerate("ababab")], 2, 3),
    doubts.verdict_on_cut_off("r", (CutOff(number=3, what="tool deploy"),)),
    doubts.verdict_on_cut_off("r", (CutOff(number=3, what="pay"), CutOff(number=4, what="pay"))),
]


@pytest.mark.parametrize("verdict", VERDICTS, ids=lambda one: one.guard)
def test_the_verdict_of_a_guard_and_the_question_about_it_are_known_in_chinese(verdict: GuardTripped) -> None:
    for text in (verdict.text, question_about_verdict(verdict).question):
        said = CHINESE.of(text)
        assert said != text and not re.search(r"[a-z] (the|of|is|and|was|were) ", said)


def test_every_guard_has_a_name_in_chinese() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in Path(str(files("ripstop"))).rglob("*.py"))
    names = {name for name in GUARD.findall(source) if name and name != "budget."} | {NO_PLAN, IN_DOUBT}
    names |= {f"budget.{limit.name}" for limit in LIMITS if limit.name != "depth"}
    assert [name for name in sorted(names) if f"guard|{name}" not in CHINESE_KEYS] == []
    assert len(names) > 12


def test_questions_about_calls_are_known_in_chinese() -> None:
    evidence = (
        "The tool 'pay' was called with {} (r/3, attempt 1). "
        "Its worker died, or was stopped, before it recorded an answer."
    )
    for ask in (doubts.question_about_doubt(3, evidence), question_about_outage(3, "ada", "openai:x", "overloaded")):
        assert CHINESE.of(ask.question) != ask.question


def by_others(text: str, given: str) -> bool:
    """Whether the author of a definition, an agent or a person wrote it."""
    return re.search(rf"(?<!\w){re.escape(msgspec.json.encode(text).decode()[1:-1])}(?!\w)", given) is not None


@pytest.mark.parametrize("label", sorted(LABELS))
def test_every_label_is_known_in_chinese(label: str) -> None:
    assert CHINESE.of(label) != label
    assert PLUGINS.translation("en").of(label) == label


@pytest.mark.parametrize("choice", [*flow.CHOICES, *(one for field in flow.FIELDS.values() for one in field.allowed)])
def test_every_choice_of_a_review_is_known_in_chinese(choice: str) -> None:
    assert CHINESE.of(choice, "choice") != choice and CHINESE.of(choice) == choice, "a state can have the same name"


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


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("not looked at: it was VERIFIED when the run was given it", "未查看：运行开始时它已是 VERIFIED"),
        ("the plan no longer has it", "计划中已没有它"),
        ("there is no report; MAIN overrides it: no time", "没有报告；MAIN 越过了它：no time"),
        ("it is TODO", "状态是 TODO"),
        ("PASS of TEST on M1-T1", "TEST 对 M1-T1 的 PASS"),
        (
            "PASS, which does not hold: claimed a.py exists; shown: it is empty",
            "PASS，但不成立：声称：a.py 存在；实际：是空的",
        ),
        ("PASS, in a report on several tasks that names none", "PASS，但该报告涉及多个任务，却没有指明任何一个"),
        ("the code was tried out while it was written", "编写代码时试运行过"),
        (
            "coding: `pytest -q` ends with 0, the last of 3 times",
            "coding：`pytest -q` 以 0 结束（共 3 次，此为最后一次）",
        ),
        ("exit code 0: files were written after it", "退出码 0：此后又写过文件"),
        ("the code is what a person has reviewed", "代码与人审阅过的一致"),
        ("changed since: a.py, b.py and 3 more", "此后改动过：a.py, b.py 等，另有 3 个"),
        ("the code was changed since it was kept back", "被退回之后代码有改动"),
        (
            "no code file differs, but 2 other files do: a.md, b.md",
            "没有代码文件不同，但另有 2 个文件不同：a.md, b.md",
        ),
        ("1 code file differs, in white space only: a.js", "1 个代码文件不同，但仅有空白不同：a.js"),
        ("12 code files differ: a.js, b.js and 10 more", "12 个代码文件不同：a.js, b.js 等，另有 10 个"),
        ("every file of the plan exists", "计划中的文件都在"),
        ("2 of 3 with all their files", "3 个任务中 2 个的文件齐全"),
    ],
)
def test_what_checks_claim_and_show_is_known_in_chinese(said: str, told: str) -> None:
    assert CHINESE.of(said, "check") == told


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("check claims pass of check; shown: pass", "check 声称：check 的 pass；实际：pass"),
        ("the plan claims a.js exists; shown: it is empty", "计划 声称：a.js 存在；实际：是空的"),
        ("check claims no open critical finding; shown: none", "check 声称：没有未解决的严重问题；实际：无"),
        ("no open blocker; shown: none", "没有未解决的阻碍；实际：无"),
        ("claimed a.js exists; shown: it is empty", "声称：a.js 存在；实际：是空的"),
    ],
)
def test_checks_as_reasons_are_known_in_chinese_with_who_claims_them(said: str, told: str) -> None:
    assert CHINESE.of(said, "reason") == told


@pytest.mark.parametrize("target", TEXTS)
def test_a_translation_fills_in_what_the_sentence_names_and_is_not_empty(target: str) -> None:
    texts = TEXTS[target]
    # the person who has a conversation need not be named to the one who is asked
    left_out = {key: names_in(key) - names_in(text) for key, text in texts.items()}
    assert {name for names in left_out.values() for name in names} <= {"person"}
    assert all(text.strip() for text in texts.values())


def test_two_authors_of_one_sentence_agree_on_its_translation() -> None:
    found: dict[str, str] = {}
    for target, texts in TEXTS.items():
        if target == HISTORY_TEXTS:  # its phrases are not looked for among the sentences of others
            continue
        assert {key: text for key, text in texts.items() if found.get(key, text) != text} == {}
        found |= texts


@pytest.mark.parametrize("target", TEXTS)
def test_no_translation_is_left_over_from_a_sentence_that_nobody_says(target: str) -> None:
    folder = Path(str(files(target.partition(":")[0])))
    source = "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py")))
    assert [key for key in TEXTS[target] if not is_said(key, source)] == []


def is_said(key: str, source: str) -> bool:
    """Whether the pieces of a sentence are in the source, or the name of an event, a field, a guard or an outcome."""
    kind, bar, name = key.partition("|")
    if bar and kind == "event":  # the kernel's are told by history, and named by their classes there
        return any(one in source for one in (name.replace(" ", "_"), name.title().replace(" ", "")))
    if kind in ("field", "guard", "outcome", "limit"):
        return name.replace(" ", "_").removeprefix("budget.") in source
    pieces = re.split(r"[\0(),:]|(?<=\.) ", PLACE.sub("\0", name if bar else key))
    return all(one.strip(" ,.'?()`\n") in source for one in pieces)


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
