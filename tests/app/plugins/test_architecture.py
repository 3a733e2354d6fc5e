"""The picture in docs/architecture.md shows the imports that there are, and is drawn so that it can be read."""

import re
import tomllib
from importlib import import_module
from itertools import combinations

import grimp
import pytest

from tests.harness.architecture import PACKAGE, PICTURE, ROOT, House, Room, draw, house_here, lay_out, read

HOUSE = house_here()
SOURCES = sorted((ROOT / "src" / PACKAGE).rglob("*.py"))
NOT_MODULES = {"models.base_url", "ripstop.toml", "tools.modules", "x.py"}
"""Settings and their file, and an example of a file of an agent."""


def test_the_picture_is_what_the_imports_give() -> None:
    assert PICTURE.read_text(encoding="utf-8") == draw(HOUSE), "The rooms import differently: `make architecture`."


def test_a_new_import_between_rooms_changes_the_picture() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    graph = grimp.build_graph(PACKAGE, exclude_type_checking_imports=True, cache_dir=None)
    assert "text" not in HOUSE.rooms["journals"].imports
    graph.add_import(importer="ripstop.journals.blobs", imported="ripstop.text.differences")
    changed = read(project, graph)
    assert "text" in changed.rooms["journals"].imports
    assert draw(changed) != draw(HOUSE)


def test_rooms_do_not_overlap_and_are_in_the_band_of_their_layer() -> None:
    plan = lay_out(HOUSE)
    for layer, band in zip(HOUSE.layers, plan.bands, strict=True):
        for name in layer:
            box = plan.boxes[name]
            assert band.left <= box.left and box.right <= band.right, name
            assert band.top <= box.top and box.bottom <= band.bottom, name
        for one, other in combinations((plan.boxes[name] for name in layer), 2):
            assert one.right < other.left or other.right < one.left, layer
    for upper, lower in zip(plan.bands, plan.bands[1:], strict=False):
        assert upper.bottom < lower.top


@pytest.mark.parametrize(
    ("imports", "arrows"),
    [
        ({"a": ("b", "c"), "b": ("c",), "c": ()}, [("a", "b"), ("b", "c")]),
        ({"a": ("b", "c"), "b": (), "c": ()}, [("a", "b"), ("a", "c")]),
        ({"a": ("b",), "b": ("a", "c"), "c": ()}, [("a", "b"), ("b", "c")]),
    ],
)
def test_an_arrow_is_left_out_where_others_lead_the_same_way(
    imports: dict[str, tuple[str, ...]], arrows: list[tuple[str, str]]
) -> None:
    rooms = {name: Room(name, (), found) for name, found in imports.items()}
    assert House((("a",), ("b",), ("c",)), rooms).arrows() == arrows


def test_texts_in_the_source_name_only_modules_that_exist() -> None:
    files = {path.relative_to(ROOT).as_posix() for path in (*SOURCES, *(ROOT / "tests").rglob("*.py"))}
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {name}"
        for path in SOURCES
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        for name in re.findall(r"`((?:\w+/)*\w+\.py|\w+(?:\.\w+)+)`", line)
        if name not in NOT_MODULES and not (_is_file(name, files) if name.endswith(".py") else _is_known(name))
    ]
    assert wrong == []


def _is_file(name: str, files: set[str]) -> bool:
    return any(f"/{file}".endswith(f"/{name}") for file in files)


def _is_known(name: str) -> bool:
    """Whether a dotted name that begins with the package or a room is a module, or in one; others are not judged."""
    parts = name.split(".")
    if parts[0] in HOUSE.rooms:
        parts.insert(0, PACKAGE)
    if parts[0] != PACKAGE or len(parts) == 1:
        return True
    for end in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        return len(parts) - end <= 1 and all(hasattr(found, rest) for rest in parts[end:])
    return False
