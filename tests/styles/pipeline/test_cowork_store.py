"""The files of a project are read and written as a whole, by descriptors, and nothing leads out."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripstop.engine.performers import Refused, TryAgain
from ripstop.styles.pipeline.store import COWORK, MAX_FILE, CoworkFolder, sha_of


@pytest.fixture
def folder(tmp_path: Path) -> CoworkFolder:
    return CoworkFolder(tmp_path)


@pytest.mark.req("S3-63", "S3-64", "S3-65", "S3-66")
def test_a_write_makes_the_folders_and_is_read_back_from_disk(folder: CoworkFolder) -> None:
    assert not folder.exists()
    sha = folder.write("data/requirements.json", b"{}")
    assert folder.exists() and sha == sha_of(b"{}")
    assert (folder.project / COWORK / "data/requirements.json").read_bytes() == b"{}"
    (folder.project / COWORK / "data/requirements.json").write_text("changed by a person")
    assert folder.read("data/requirements.json") == b"changed by a person"


@pytest.mark.req("S3-86")
def test_a_missing_file_is_named_with_what_the_system_says(folder: CoworkFolder) -> None:
    with pytest.raises(Refused) as raised:
        folder.text("artifacts/idea.md")
    assert str(raised.value) == "Failed to read file .cowork/artifacts/idea.md: No such file or directory"


@pytest.mark.parametrize("link", ["", "data", "data/x.json"])
def test_links_are_not_followed(folder: CoworkFolder, link: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "x.json").write_text("secret")
    place = folder.project / COWORK / link
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(outside / "x.json" if link.endswith("json") else outside)
    with pytest.raises(Refused, match=r"symbolic link|cannot be used"):
        folder.read("data/x.json")
    if not link.endswith("json"):  # a link in a file's place is replaced, not followed; only reading tells
        with pytest.raises(Refused):
            folder.write("data/x.json", b"ours")
    assert (outside / "x.json").read_text() == "secret"
    assert sorted(os.listdir(outside)) == ["x.json"]


@pytest.mark.parametrize("path", ["../x", "/etc/x", "", "data/../../x", "a\0b", "data/\x1b"])
def test_paths_stay_below_the_folder(folder: CoworkFolder, path: str) -> None:
    with pytest.raises(Refused, match="cannot be used as a path"):
        folder.write(path, b"x")
    with pytest.raises(Refused, match="cannot be used as a path"):
        folder.read(path)


def test_a_pipe_does_not_make_a_reader_wait(folder: CoworkFolder) -> None:
    folder.prepare()
    os.mkfifo(folder.project / COWORK / "data/x.json")
    with pytest.raises(Refused, match="not a regular file"):
        folder.read("data/x.json")


def test_a_file_that_is_too_large_is_neither_read_nor_written(folder: CoworkFolder) -> None:
    folder.prepare()
    with (folder.project / COWORK / "data/x.json").open("wb") as file:
        file.truncate(MAX_FILE + 1)
    with pytest.raises(Refused, match="too large"):
        folder.read("data/x.json")
    with pytest.raises(Refused, match="at most 5,000,000 are possible"):
        folder.write("data/y.json", b"x" * (MAX_FILE + 1))


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write to read-only folders")
def test_a_read_only_folder_is_named(folder: CoworkFolder) -> None:
    folder.prepare()
    data = folder.project / COWORK / "data"
    data.chmod(0o500)
    try:
        with pytest.raises(Refused, match="Allow this user to read and write there"):
            folder.write("data/x.json", b"x")
    finally:
        data.chmod(0o700)


def test_a_full_disk_keeps_the_old_file(folder: CoworkFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write("data/x.json", b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TryAgain, match="Make room on the disk"):
        folder.write("data/x.json", b"new")
    assert folder.read("data/x.json") == b"old"
    assert os.listdir(folder.project / COWORK / "data") == ["x.json"]


def test_what_a_killed_writer_left_is_removed_by_the_next(folder: CoworkFolder) -> None:
    folder.prepare()
    (folder.project / COWORK / "data/.ripstop-0123").write_text("half")
    folder.write("data/x.json", b"x")
    assert os.listdir(folder.project / COWORK / "data") == ["x.json"]


def test_the_log_has_every_hash_that_was_written_even_behind_a_torn_line(folder: CoworkFolder) -> None:
    first = folder.write("data/x.json", b"1", stage="prd")
    log = folder.project / COWORK / "logs/engine.jsonl"
    log.write_bytes(log.read_bytes() + b'{"path": "data/x.js')
    second = folder.write("data/x.json", b"2", stage="prd")
    assert folder.logged_hashes()["data/x.json"] == {first, second}


def test_a_long_log_is_shortened(folder: CoworkFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ripstop.styles.pipeline.store.MAX_LOG", 1_000)
    for number in range(50):
        sha = folder.write("data/x.json", str(number).encode())
    assert (folder.project / COWORK / "logs/engine.jsonl").stat().st_size < 1_500
    assert sha in folder.logged_hashes()["data/x.json"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.binary(max_size=20)), max_size=8))
@settings(max_examples=25)
def test_the_store_keeps_the_last_of_every_file(writes: list[tuple[str, bytes]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = CoworkFolder(Path(place))
        for name, data in writes:
            folder.write(f"data/{name}", data)
        assert {name: folder.read(f"data/{name}") for name, _ in writes} == dict(writes)
