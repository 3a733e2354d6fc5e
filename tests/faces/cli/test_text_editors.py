"""An editor is opened on a private copy; whatever the editor does, what a person wrote is not lost."""

import asyncio
from pathlib import Path

import pytest

from ripstop.faces.cli.init import EditedCopy, find_editor
from ripstop.kernel.errors import UsageError


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)


def edited(script: str, monkeypatch: pytest.MonkeyPatch, document: str = "one\ntwo\n") -> str:
    program = Path("editor")
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(program.absolute()))
    copy = EditedCopy(document, "r/3")
    try:
        return asyncio.run(copy.edit())
    finally:
        copy.close()


def kept() -> list[bytes]:
    return [path.read_bytes() for path in Path(".ripstop/kept").iterdir()]


def test_what_the_editor_saved_is_the_document(monkeypatch: pytest.MonkeyPatch) -> None:
    text = edited("""case "$1" in *.md) ;; *) exit 9 ;; esac; sed -i s/two/三/ "$1" """, monkeypatch)
    assert text == "one\n三\n"
    assert kept() == [text.encode()], "it is kept until it is recorded"


@pytest.mark.parametrize(
    ("script", "told", "left"),
    [
        ("true", "was not changed", []),
        (': > "$1"', "is empty now", []),
        (
            'echo x >> "$1"; exit 3',
            "ended with exit code 3, so nothing was answered. Your text is in .ripstop/kept/",
            [b"one\ntwo\nx\n"],
        ),
        ("exit 1", "ended with exit code 1", []),
        ('echo x >> "$1"; kill -9 $$', "was ended by signal 9", [b"one\ntwo\nx\n"]),
        ("printf '\\377' > $1", "is not UTF-8 text (byte 1)", [b"\xff"]),
        ('rm "$1"', "cannot be read: No such file", []),
        ('rm "$1"; mkdir "$1"', "it is a folder", None),
    ],
)
def test_an_editor_that_leaves_no_answer_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, script: str, told: str, left: list[bytes] | None
) -> None:
    with pytest.raises(UsageError) as refused:
        edited(script, monkeypatch)
    assert told in str(refused.value)
    assert left is None or kept() == left


def test_a_document_without_a_newline_at_its_end_counts_as_unchanged_when_an_editor_adds_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(UsageError, match="was not changed"):
        edited("""sed -i -e '$a\\' "$1" """, monkeypatch, "no newline")


def test_the_copy_is_private(monkeypatch: pytest.MonkeyPatch) -> None:
    copy = EditedCopy("secret", "../../a b/3")
    assert copy.path.stat().st_mode & 0o777 == 0o600
    assert copy.path.resolve().parent == Path(".ripstop/kept").resolve()
    assert Path(".ripstop").stat().st_mode & 0o777 == 0o700
    copy.is_recorded = True
    copy.close()
    assert kept() == []


def test_the_editor_is_the_one_that_the_user_has_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDITOR", "cat")
    assert find_editor() == ["cat"]
    monkeypatch.setenv("VISUAL", "cat -n 'x y'")
    assert find_editor() == ["cat", "-n", "x y"]
    monkeypatch.setenv("VISUAL", "cat 'x")
    with pytest.raises(UsageError, match=r"\$VISUAL is not a command"):
        find_editor()
    monkeypatch.setenv("VISUAL", "no-such-editor")
    with pytest.raises(UsageError, match=r"\$VISUAL names 'no-such-editor'"):
        find_editor()


def test_without_a_choice_an_installed_editor_is_found_or_the_way_to_set_one_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="export EDITOR=nano"):
        find_editor()
    (tmp_path / "vi").touch(0o755)
    assert find_editor() == ["vi"]


def test_a_copy_that_was_emptied_begins_with_the_document_again(monkeypatch: pytest.MonkeyPatch) -> None:
    copy = EditedCopy("one\n", "r/3")
    Path("editor").write_text('#!/bin/sh\n[ -e again ] && echo two >> "$1" || : > "$1"; touch again\n')
    Path("editor").chmod(0o755)
    monkeypatch.setenv("EDITOR", str(Path("editor").absolute()))
    with pytest.raises(UsageError, match="is empty now"):
        asyncio.run(copy.edit())
    assert asyncio.run(copy.edit()) == "one\ntwo\n"


def test_a_copy_keeps_what_was_written_when_it_is_edited_again(monkeypatch: pytest.MonkeyPatch) -> None:
    copy = EditedCopy("one\n", "r/3")
    Path("editor").write_text('#!/bin/sh\necho two >> "$1"; [ -e again ] || { touch again; exit 1; }\n')
    Path("editor").chmod(0o755)
    monkeypatch.setenv("EDITOR", str(Path("editor").absolute()))
    with pytest.raises(UsageError, match="exit code 1"):
        asyncio.run(copy.edit())
    assert asyncio.run(copy.edit()) == "one\ntwo\ntwo\n"
