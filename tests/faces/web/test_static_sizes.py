"""What a browser loads once is small."""

import gzip

import pytest

from ripstop.faces.web.rendering import FOLDER

KB = 1024


@pytest.mark.parametrize(("pattern", "most"), [("*.css", 10 * KB), ("*.js", 8 * KB)])
def test_styles_and_scripts_are_within_their_budgets(pattern: str, most: int) -> None:
    sizes = {path.name: len(gzip.compress(path.read_bytes())) for path in (FOLDER / "static").glob(pattern)}
    assert sizes and sum(sizes.values()) <= most, sizes
