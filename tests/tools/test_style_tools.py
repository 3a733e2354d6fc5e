"""A tool that a style calls with a Struct and that answers with one."""

import asyncio
import math

import msgspec
import pytest
from msgspec import Struct

from ripstop.engine.performers import Kind, Refused, Request
from ripstop.kernel.effects import CallTool, ToolReturned
from ripstop.tools.style_tools import typed_tool
from tests.tools.tool_requests import tool_request


class MeasureCall(Struct, frozen=True):
    path: str
    words: tuple[str, ...]


class Measured(Struct, frozen=True):
    path: str
    lengths: tuple[tuple[str, int], ...] = ()
    mean: float = 0.0


async def measure(request: Request, call: MeasureCall) -> Measured:
    lengths = tuple((word, len(word)) for word in call.words)
    return Measured(f"{request.run_id}:{call.path}", lengths, math.nan if not lengths else len(lengths[0][0]))


TOOL = typed_tool("measure", MeasureCall, measure)


def performed(**arguments: object) -> object:
    answer = asyncio.run(TOOL.perform(tool_request(arguments, tool="measure")))
    assert isinstance(answer, ToolReturned)
    return answer.value


def test_a_typed_tool_gets_its_call_as_a_struct_and_answers_as_the_journal_has_it() -> None:
    value = performed(path="a", words=["one", "three"])
    assert value == {"path": "r:a", "lengths": [["one", 3], ["three", 5]], "mean": 3.0}
    assert msgspec.convert(value, Measured) == Measured("r:a", (("one", 3), ("three", 5)), 3.0)


def test_an_answer_in_memory_is_the_answer_that_is_read_back() -> None:
    value = performed(path="a", words=[])
    assert value == msgspec.json.decode(msgspec.json.encode(value)) == {"path": "r:a", "lengths": [], "mean": None}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"path": "a"}, "Object missing required field `words`"),
        ({"path": 7, "words": []}, "Expected `str`, got `int` - at `$.path`"),
    ],
)
def test_a_wrong_call_is_refused_as_a_mistake_in_ripstop(arguments: dict[str, object], problem: str) -> None:
    with pytest.raises(Refused, match="measure was called wrongly") as refusal:
        performed(**arguments)
    assert str(refusal.value) == f"measure was called wrongly: {problem}."
    assert refusal.value.fault == "ours"


def test_a_typed_tool_can_be_repeated_and_is_offered_by_its_name() -> None:
    assert TOOL.kind(CallTool(tool="measure")) is Kind.PURE
    assert TOOL.offers() == ("tool:measure",)
