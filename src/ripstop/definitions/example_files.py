"""Writing an example: all its files, and nothing over a file that is there already."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from ripstop.kernel.errors import UsageError


def write_files(folder: Path, files: Mapping[str, str], folders: Iterable[str] = ()) -> list[Path]:
    """Write texts by their paths in a folder, and make some folders as well. Raises `UsageError`."""
    for file in files:
        if (folder / file).exists():
            raise UsageError(f"There is a file {folder / file} already. Choose a new folder.")
    try:
        for name in folders:
            (folder / name).mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            with (folder / file).open("x", encoding="utf-8", newline="\n") as opened:
                opened.write(text)
    except OSError as error:
        raise UsageError(f"The example cannot be written to {folder}: {error.strerror}.") from error
    return [folder / file for file in files]
