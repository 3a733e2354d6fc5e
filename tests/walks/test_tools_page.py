"""What docs/tools.md shows is true: its programs run, and print what the page says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.walks.test_readme import ROOT

PAGE = (ROOT / "docs" / "tools.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)


def test_every_program_of_the_page_shows_its_output() -> None:
    assert len(PROGRAMS) == PAGE.count("```python\n") == 3


@pytest.mark.parametrize(("program", "output"), PROGRAMS, ids=["order", "study", "release"])
def test_a_program_of_the_page_prints_what_it_shows(program: str, output: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.stdout == output, done.stderr
