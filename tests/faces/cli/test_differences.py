"""The difference between two texts is right, whatever they are, and shows what changed."""

import random

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from ripstop.text.differences import CONTEXT, DifferenceLine, Hunk, apply_difference, difference

LINES = st.lists(st.sampled_from(["", "a", "b", "the cat sat", "the dog sat", "猫が座る", "犬が座る", "x\r", "\u2028"]))
TEXTS = LINES.flatmap(lambda lines: st.sampled_from(["\n".join(lines), "".join(f"{line}\n" for line in lines)]))


def lines(old: str, new: str) -> list[DifferenceLine]:
    return [line for hunk in difference(old, new) for line in hunk.lines]


def changed(old: str, new: str, kind: str) -> list[str]:
    """What is shown as removed or added, part by part."""
    return [part.text for line in lines(old, new) for part in line.segments if part.kind == kind]


def check(old: str, new: str) -> list[Hunk]:
    hunks = difference(old, new)
    assert apply_difference(old, hunks) == new
    for line in (line for hunk in hunks for line in hunk.lines):
        other = {"removed": "added", "added": "removed"}.get(line.kind)
        assert other not in {part.kind for part in line.segments}
        assert (line.old > 0, line.new > 0) == (line.kind != "added", line.kind != "removed")
    return hunks


@for_all(TEXTS, TEXTS)
def test_the_difference_makes_the_new_text_of_the_old_one(old: str, new: str) -> None:
    assert bool(check(old, new)) == (old != new)


@for_all(st.text(), st.text())
def test_any_two_texts_have_a_difference(old: str, new: str) -> None:
    check(old, new)


@for_all(TEXTS, TEXTS)
def test_every_line_is_at_its_number(old: str, new: str) -> None:
    old_lines, new_lines = ([*(f"{line}\n" for line in text.split("\n"))] for text in (old, new))
    for line in lines(old, new):
        assert not line.old or old_lines[line.old - 1] == line.text.removesuffix("\n") + "\n"
        assert not line.new or new_lines[line.new - 1] == line.text.removesuffix("\n") + "\n"


def test_a_difference_of_another_text_is_refused() -> None:
    with pytest.raises(ValueError, match="line 1 is not in the old text"):
        apply_difference("c\n", difference("a\n", "b\n"))


def test_the_same_text_has_no_difference() -> None:
    assert difference("a\nb", "a\nb") == [] == difference("", "")


def test_within_a_changed_line_only_the_words_are_marked() -> None:
    old, new = "The quick fox jumps over the dog.\n", "The slow fox jumps over the dog.\n"
    assert (changed(old, new, "removed"), changed(old, new, "added")) == (["quick"], ["slow"])


@pytest.mark.parametrize(
    ("old", "new", "removed", "added"),
    [
        ("用户可以上传文件并下载", "用户可以上传图片并下载", "文件", "图片"),
        ("ユーザーは毎日ログインできる", "ユーザーは毎週ログインできる", "日", "週"),
        ("사용자는 파일을 올린다", "사용자는 사진을 올린다", "파일", "사진"),
        ("版本 v1 的说明", "版本 v2 的说明", "v1", "v2"),
    ],
)
def test_scripts_without_spaces_are_compared_by_character(old: str, new: str, removed: str, added: str) -> None:
    assert (changed(old, new, "removed"), changed(old, new, "added")) == ([removed], [added])


def test_lines_that_have_nothing_in_common_are_not_compared_word_by_word() -> None:
    assert changed("alpha beta\n", "42\n", "removed") == ["alpha beta\n"]


def test_a_removed_line_comes_before_the_line_that_it_became() -> None:
    shown = [
        (line.kind, line.text) for line in lines("one red hat\ntwo red cats\n", "new\none big hat\ntwo big cats\n")
    ]
    assert shown == [
        ("added", "new\n"),
        ("removed", "one red hat\n"),
        ("added", "one big hat\n"),
        ("removed", "two red cats\n"),
        ("added", "two big cats\n"),
    ]


def test_distant_changes_are_hunks_of_their_own() -> None:
    old = [f"line {number}\n" for number in range(100)]
    new = [*old]
    new[10], new[50] = "ten\n", "fifty\n"
    first, second = difference("".join(old), "".join(new))
    assert (first.lines[0].old, first.lines[-1].old) == (11 - CONTEXT, 11 + CONTEXT)
    assert second.lines[0].old == 51 - CONTEXT


def test_a_missing_newline_at_the_end_is_a_change() -> None:
    assert [line.kind for line in lines("a", "a\n")] == ["removed", "added"]


HUGE = {
    "repeated": ("a\nb\n" * 250_000, "b\na\n" * 250_000),
    "empty lines": ("\n" * 1_000_000, "x\n" * 500_000),
    "one line": ("x y " * 250_000, "y x " * 250_000),
    "few words": ("ab\n" * 300_000 + "x", "y\n" + "ab\n" * 300_001),
    "nested": (
        "".join(f"{n}\n" for n in [*range(60_000), *range(60_000)]),
        "".join(f"{n}\n" for n in [*range(0, 60_000, 2), *range(60_000), *range(1, 60_000, 2)]),
    ),
}


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.parametrize("name", HUGE)
def test_a_megabyte_is_compared(name: str) -> None:
    old, new = HUGE[name]
    assert apply_difference(old, difference(old, new)) == new


@pytest.mark.long
def test_a_megabyte_at_random_is_compared() -> None:
    chance = random.Random(7)
    old = [f"{chance.choice('abcdefgh')} {chance.randrange(3000)}" for _ in range(150_000)]
    new = [line for line in old if chance.random() > 0.1]
    chance.shuffle(new[1000:5000])
    for _ in range(5000):
        new.insert(chance.randrange(len(new)), chance.choice(old))
    check("\n".join(old), "\n".join(new))
