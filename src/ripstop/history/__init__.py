"""What any face may show, as plain data: runs, questions with the text behind them, ways to continue.

Nothing here names a shell command, a key or a button: a face turns a way into one.
"""

from ripstop.kernel.questions import kind_of

from .answers import AskedQuestion, GivenAnswer, QuestionLog, answers_in
from .desk import DeskItem, ShownRecord, desk_item, halted_item, halted_runs, way
from .runs import (
    ToolCallLeft,
    run_document,
    run_row,
    shown_counts,
    shown_status,
    tool_calls_left,
    waiting,
    why_document,
)

__all__ = [
    "AskedQuestion",
    "DeskItem",
    "GivenAnswer",
    "QuestionLog",
    "ShownRecord",
    "ToolCallLeft",
    "answers_in",
    "desk_item",
    "halted_item",
    "halted_runs",
    "kind_of",
    "run_document",
    "run_row",
    "shown_counts",
    "shown_status",
    "tool_calls_left",
    "waiting",
    "way",
    "why_document",
]
