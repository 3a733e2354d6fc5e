"""The columns of a run are named once, and every statement says what it is for."""

import re
import sqlite3

import pytest

from ripstop.engine.ports import LISTED, Entry, RunInfo
from ripstop.journals.sqlite.derived import RunRow
from ripstop.journals.sqlite.sql import RUN_COLUMNS, migrations, queries


@pytest.mark.parametrize("name", queries())
def test_every_statement_has_a_line_of_purpose(name: str) -> None:
    assert re.match(r"-- [A-Z].+\n", queries()[name])


def test_every_column_of_a_run_is_in_its_row() -> None:
    with sqlite3.connect(":memory:") as db:
        for script in migrations().values():
            db.executescript(script)
        columns = {name for _, name, *_ in db.execute("PRAGMA table_info(runs)")}
    assert {"id" if name == "run_id" else name for name in RunRow._fields} == columns
    assert set(RUN_COLUMNS) < columns


def test_a_row_has_the_order_in_which_it_is_selected() -> None:
    assert RunRow._fields == ("key", *RunInfo.__struct_fields__, "last", "head", "parent_number")


def test_what_an_entry_says_for_the_list_is_in_the_list() -> None:
    assert set(LISTED) <= set(Entry.__struct_fields__) & set(RunInfo.__struct_fields__)
