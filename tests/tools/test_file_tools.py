"""File tools as an agent calls them, through the toolbox."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ripstop.engine.performers import Kind, Refused, Request
from ripstop.kernel.effects import Answer, CallTool, ToolReturned
from ripstop.kernel.events import RunSettings
from ripstop.tools.toolbox import Toolbox, tool
from ripstop.tools.workspace_tools import FileTools
from tests.tools.tool_requests import tool_request

BOX = Toolbox(files=FileTools())


def request(name: str, settings: RunSettings, agent: str = "writer", **arguments: Any) -> Request:
    return tool_request(arguments, "soup-1", name, settings, agent, number=7)


def call(name: str, settings: RunSettings, agent: str = "writer", **arguments: Any) -> Any:
    answer: Answer | None = asyncio.run(BOX.perform(request(name, settings, agent, **arguments)))
    assert isinstance(answer, ToolReturned)
    return answer.value


@pytest.mark.req("S1-18", "S1-19")
def test_agents_share_collab_and_nothing_else(tmp_path: Path) -> None:
    settings = RunSettings(workspace=str(tmp_path))
    call("write_file", settings, path="collab/plan.md", content="soup\n")
    call("write_file", settings, path="notes.md", content="mine\n")
    call("edit_file", settings, "reviewer", path="collab/plan.md", search="soup", replace="tea")
    assert call("read_file", settings, path="collab/plan.md") == "tea\n"
    assert call("list_files", settings, "reviewer") == {"entries": ["collab/plan.md"], "more": False}
    assert call("search_files", settings, "reviewer", text="tea")["hits"][0]["path"] == "collab/plan.md"
    for path in ("notes.md", "writer/notes.md"):
        with pytest.raises(Refused, match="There is no"):
            call("read_file", settings, "reviewer", path=path)


def test_without_a_workspace_the_files_are_kept_by_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call("write_file", RunSettings(), path="collab/a.md", content="a\n")
    assert (tmp_path / ".ripstop" / "workspaces" / "soup-1" / "collab" / "a.md").read_text() == "a\n"


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("read_file", {}, "missing required field `path`.*It takes: path"),
        ("write_file", {"path": "a", "content": 1}, r"\$\.content"),
        ("list_files", {"folder": "a"}, "unknown field `folder`"),
        ("delete_file", {"path": "a"}, "no tool 'delete_file'.*edit_file, list_files, read_file"),
    ],
)
def test_a_wrong_call_is_answered_with_what_is_wrong(name: str, arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused, match=why):
        call(name, RunSettings(), **arguments)


def test_agents_are_told_about_the_tools_they_have() -> None:
    specs = BOX.specs(("edit_file", "nothing", "read_file"))
    assert [spec.name for spec in specs] == ["edit_file", "read_file"]
    assert all(spec.description for spec in specs)
    assert specs[0].parameters["required"] == ["path", "search", "replace"]


@pytest.mark.parametrize("name", FileTools.names)
def test_says_what_a_crash_in_the_middle_means(name: str) -> None:
    wanted = {"edit_file": Kind.PROBEABLE, "run_command": Kind.UNSAFE}.get(name, Kind.PURE)
    assert BOX.kind(CallTool(tool=name)) is wanted


def test_an_edit_in_doubt_is_asked_whether_it_happened(tmp_path: Path) -> None:
    settings = RunSettings(workspace=str(tmp_path))
    call("write_file", settings, path="a.txt", content="one\n")
    edit = request("edit_file", settings, path="a.txt", search="one", replace="two")
    assert asyncio.run(BOX.probe(edit)) is None
    done = asyncio.run(BOX.perform(edit))
    assert asyncio.run(BOX.probe(edit)) == done == ToolReturned(value={"path": "a.txt", "bytes": 4})


def test_a_tool_of_the_same_name_takes_the_place_of_a_file_tool() -> None:
    @tool("unsafe")
    def read_file(path: str) -> str:
        """Read something else."""
        return f"not {path}"

    box = Toolbox([read_file], files=FileTools())
    assert box.kind(CallTool(tool="read_file")) is Kind.UNSAFE
    assert box.specs(("read_file",))[0].description == "Read something else."
    assert asyncio.run(box.perform(request("read_file", RunSettings(), path="a"))) == ToolReturned(value="not a")
