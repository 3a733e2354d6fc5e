"""Every number that a user can set has a range; whatever is outside is refused where it was written."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from ripstop.app.settings.number_ranges import ANY_KEY, NUMBERS, range_of
from ripstop.app.settings.settings_file import Price, Settings, read_settings
from ripstop.faces.cli.main import cli
from ripstop.kernel.errors import UsageError
from tests.harness.mutate_settings import files, read_all

NEVER = ("nan", "inf", "-inf", "-1", "-0.5", "1e400", "9" * 30, "9" * 5000, "true", "'1'", "[1]", "1979-05-27", "{}")


def setting(keys: tuple[str, ...]) -> str:
    return ".".join("somebody" if key == ANY_KEY else key for key in keys)


@pytest.mark.parametrize("value", NEVER)
@pytest.mark.parametrize("keys", NUMBERS, ids=setting)
def test_no_number_of_a_file_can_be_out_of_its_range(tmp_path: Path, keys: tuple[str, ...], value: str) -> None:
    (tmp_path / "ripstop.toml").write_text(f"# first line\n{setting(keys)} = {value}\n")
    with pytest.raises(UsageError) as refused:
        read_settings(tmp_path, {})
    said = str(refused.value)
    assert said.startswith(f"{tmp_path / 'ripstop.toml'}:2: ") or "not TOML" in said
    assert len(said) < 500


@pytest.mark.parametrize("keys", [keys for keys, range_ in NUMBERS.items() if range_.least == 1 or range_.above])
def test_zero_is_refused_where_it_would_stop_everything(tmp_path: Path, keys: tuple[str, ...]) -> None:
    (tmp_path / "ripstop.toml").write_text(f"{setting(keys)} = 0\n")
    with pytest.raises(UsageError, match=r"ripstop.toml:1: .* must be .*, not 0\.$"):
        read_settings(tmp_path, {})


@pytest.mark.parametrize(("keys", "range_"), NUMBERS.items())
def test_both_ends_of_a_range_are_accepted(tmp_path: Path, keys: tuple[str, ...], range_: object) -> None:
    found = range_of(*keys)
    assert found is not None
    for value in (found.most, found.least + found.above):
        # some are the user's alone, so the file is the user's own
        (tmp_path / "ripstop").mkdir(exist_ok=True)
        server = 'mcp.somebody.command = ["x"]\n' if keys[0] == "mcp" else ""  # it must have one
        (tmp_path / "ripstop" / "ripstop.toml").write_text(f"{server}{setting(keys)} = {value}\n")
        read_settings(tmp_path / "project", {"XDG_CONFIG_HOME": str(tmp_path)})


def test_a_project_cannot_choose_what_agents_run(tmp_path: Path) -> None:
    (tmp_path / "ripstop.toml").write_text("[commands]\nunconfined = true\n")
    with pytest.raises(UsageError, match="a project must not choose what agents run"):
        read_settings(tmp_path, {"XDG_CONFIG_HOME": str(tmp_path / "config")})


def test_settings_made_in_python_are_checked_too() -> None:
    with pytest.raises(UsageError, match="`concurrency`: must be from 1 to 10000, not 0"):
        Settings(concurrency=0)
    with pytest.raises(UsageError, match=r"`rate_limits.openai`: must be from 0 to 86400, not nan"):
        Settings(rate_limits={"openai": float("nan")})
    with pytest.raises(UsageError, match=r"`prices.m.input`"):
        Settings(prices={"m": Price(input=-1)})


@given(st.floats() | st.integers())
def test_a_range_holds_only_what_compares_as_inside(value: float) -> None:
    for range_ in NUMBERS.values():
        assert range_.holds(value) == (
            range_.least <= value <= range_.most and not (range_.above and value == range_.least)
        )


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-1", "0", "1e400", "9" * 30, "9" * 5000, "x", ""])
@pytest.mark.parametrize("option", ["--max-tokens", "--max-money", "--max-calls", "--max-seconds"])
def test_options_have_the_same_ranges(option: str, value: str) -> None:
    done = CliRunner().invoke(cli, ["run", "nowhere", option, value])
    assert done.exit_code == 2
    assert option in done.stderr


@pytest.mark.parametrize("value", ["nan", "inf", "1e400", "1.0e400", "-1", "0", "9" * 30, "9" * 5000])
def test_a_limit_cannot_be_raised_by_what_is_not_a_number(value: str) -> None:
    done = CliRunner().invoke(cli, ["resume", "run", "--raise", f"money={value}"])
    assert done.exit_code == 2
    assert "--raise" in done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "guards.x = " + "[" * 30_000,
        "guards.x = " + "[" * 400 + "]" * 400,
        "guards." + "a." * 30_000 + "a = 1",
        "x = " + "{a=" * 20_000,
        "concurrency = " + "9" * 60_000,
        "a = 1\n" * 2,
        "guards.then = '" + "9" * 5_000 + "'",
        "model_for_all = 'x'",
        "address_from = ''",
    ],
    ids=lambda text: text[:12],
)
def test_a_hostile_file_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "ripstop.toml").write_text(text)
    with pytest.raises(UsageError) as refused:
        read_settings(tmp_path, {})
    assert str(refused.value).startswith(str(tmp_path / "ripstop.toml"))
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 1_000


def test_mutated_files_are_settings_or_are_refused(tmp_path: Path) -> None:
    tally = read_all(files(300, seed=7), tmp_path)
    assert tally.refused > 100 and tally.valid > 30, "the files are neither all wrong nor all right"


@pytest.mark.long
def test_many_mutated_files_are_settings_or_are_refused(tmp_path: Path) -> None:
    assert read_all(files(5_000, seed=8), tmp_path).count > 5_000
