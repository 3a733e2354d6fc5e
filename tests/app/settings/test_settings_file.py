"""What is wrong with `ripstop.toml` is said with its file, its line, and what would be right."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripstop.app.settings.settings_file import Settings, line_of, read_settings
from ripstop.kernel.errors import UsageError


def complaint(folder: Path, text: str) -> str:
    path = folder / "ripstop.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        read_settings(folder, {})
    said = str(caught.value)
    assert said.startswith(str(path))
    return said.removeprefix(str(path))


@pytest.mark.parametrize(
    ("text", "place", "parts"),
    [
        (
            "# mine\n[limts]\ntokens = 5\n",
            ":2: `limts`",
            ["no such setting; did you mean 'limits'? Known here: store, concurrency"],
        ),
        ("[limits]\n\ntokns = 5\n", ":3: `limits.tokns`", ["did you mean 'tokens'?"]),
        ("limits = {tokns = 5}\n", ":1: `limits.tokns`", ["did you mean 'tokens'?"]),
        ("models.defualt = 'x'\n", ":1: `models.defualt`", ["did you mean 'default'?"]),
        ('[prices."openai:x"]\ninputs = 1.0\n', ":2: `prices.openai:x.inputs`", ["did you mean 'input'?"]),
        ("\nzzz = 1\n", ":2: `zzz`", ["there is no such setting. Known here"]),
        ("[docs]\nattempts = 'x'\n", ":2: `docs.attempts`", ["expected a number, got `str`"]),
        ("[docs]\nattempts = 0\n", ":2: `docs.attempts`", ["must be from 1 to 1000, not 0"]),
        ("[rate_limits]\nopenai = 'x'\n", ":2: `rate_limits.openai`", ["expected a number, got `str`"]),
        ("[limits]\ntokens = -1\n", ":2: `limits.tokens`", ["must be from 1 to 1000000000000, not -1"]),
        ("[guards]\npatience = 1\npatince = 1\n", ":3: `guards.patince`", ["no guard 'patince'", "patience"]),
        ("docs = 5\n", ":1: `docs`", ["expected `object`, got `int`"]),
        ("[docs\n", "", ["not TOML", "line 1"]),
        ('\nstore = "nope"\n', ":2: `store`", ["the store 'nope' is not known; write sqlite:PATH"]),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, text: str, place: str, parts: list[str]) -> None:
    said = complaint(tmp_path, text)
    assert said.startswith(f"{place}: ")
    for part in parts:
        assert part in said


@pytest.mark.parametrize("store", ["nope", "sqlite:", "sqlite::memory:"])
def test_a_wrong_store_is_blamed_on_what_named_it(tmp_path: Path, store: str) -> None:
    with pytest.raises(UsageError, match=f"^RIPSTOP_STORE {store!r} is"):
        read_settings(tmp_path, {"RIPSTOP_STORE": store})
    with pytest.raises(UsageError, match=f"^--store {store!r} is"):
        read_settings(tmp_path, {"RIPSTOP_STORE": "sqlite:other.db"}, store=store)


def test_a_pipe_is_no_settings_file_and_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ripstop.toml")
    with pytest.raises(UsageError, match="cannot be read: it is a pipe, not a file"):
        read_settings(tmp_path, {})


def test_a_device_is_no_settings_file(tmp_path: Path) -> None:
    (tmp_path / "ripstop.toml").symlink_to("/dev/zero")
    with pytest.raises(UsageError, match="cannot be read: it is a device, not a file"):
        read_settings(tmp_path, {})


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "ripstop.toml").open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(UsageError, match="1000000000000 bytes; at most"):
        read_settings(tmp_path, {})


def test_no_file_gives_the_defaults(tmp_path: Path) -> None:
    assert read_settings(tmp_path, {}) == Settings()


@given(st.text(), st.lists(st.text(max_size=5), max_size=3))
def test_a_line_can_be_looked_for_in_any_text(text: str, keys: list[str]) -> None:
    found = line_of(text, tuple(keys))
    assert found is None or 1 <= found <= len(text.splitlines())


@pytest.mark.parametrize(
    "store", ["sqlite:/tmp/x.db", "sqlite:../x.db", "sqlite:a/../../x.db", "sqlite:out/x.db", "sqlite:\\u0000"]
)
def test_a_project_cannot_have_its_journal_written_outside_its_folder(tmp_path: Path, store: str) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "out").symlink_to(tmp_path)
    said = complaint(folder, f'store = "{store}"\n')
    assert "outside of the project's folder" in said
    assert "RIPSTOP_STORE" in said


def test_a_store_outside_of_a_project_is_the_user_s_choice(tmp_path: Path) -> None:
    (tmp_path / "home" / "ripstop").mkdir(parents=True)
    (tmp_path / "ripstop.toml").write_text('store = "sqlite:/elsewhere/j.db"\n')
    home = {"XDG_CONFIG_HOME": str(tmp_path / "home")}
    assert read_settings(tmp_path, home, store="sqlite:/named/j.db").store == "sqlite:/named/j.db"
    assert read_settings(tmp_path, home | {"RIPSTOP_STORE": "sqlite:/named/j.db"}).store == "sqlite:/named/j.db"
    (tmp_path / "home" / "ripstop" / "ripstop.toml").write_text('store = "sqlite:/elsewhere/j.db"\n')
    assert read_settings(tmp_path, home).store == "sqlite:/elsewhere/j.db"
    (tmp_path / "ripstop.toml").write_text('store = "sqlite:data/j.db"\n')
    assert read_settings(tmp_path, {}).store == "sqlite:data/j.db"
