"""What pages for contributors name is there: one about files that were moved leads newcomers to the wrong room."""

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

import ripstop
from ripstop.app.plugins import BUILT_IN

PACKAGE = Path(ripstop.__file__).parent
ROOT = PACKAGE.parents[1]
PAGES = ("docs/architecture.md", "CONTRIBUTING.md")
STYLES = tuple(plugin.name for plugin in BUILT_IN)
_QUOTED = re.compile(r"`([\w./{},-]+)`")
_ROOM = re.compile(r"^\| `(\w+)/` \|", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")


def paths_in(text: str) -> Iterator[str]:
    """Quoted paths; not names of single folders, which can be inside of what the sentence is about."""
    for quoted in _QUOTED.findall(text):
        if "/" in quoted.rstrip("/"):
            yield quoted


def exists(path: str) -> bool:
    """Whether it is a path of the repository or of the package. In that of a style `x` is any of them."""
    names = [path.replace("styles/x/", f"styles/{style}/") for style in STYLES]
    return any((root / name).exists() for root, name in product((ROOT, PACKAGE), names))


@pytest.mark.parametrize("page", PAGES)
def test_files_that_a_page_names_exist(page: str) -> None:
    named = set(paths_in((ROOT / page).read_text(encoding="utf-8")))
    assert named
    assert sorted(path for path in named if not exists(path)) == []


def test_the_table_has_every_room_once() -> None:
    rooms = _ROOM.findall((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))
    assert sorted(rooms) == sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))


@pytest.mark.parametrize(
    "page",
    sorted(
        str(path.relative_to(ROOT))
        for pattern in ("*.md", "docs/*.md", "docs/decisions/*.md", "examples/*.md", "bench/*.md")
        for path in ROOT.glob(pattern)
    ),
)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    path = ROOT / page
    links = (link for link in _LINK.findall(path.read_text(encoding="utf-8")) if "://" not in link)
    assert [link for link in links if not (path.parent / link).exists()] == []
