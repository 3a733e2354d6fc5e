"""The knowledge base of a bot: the style's call is performed by the real tool, and its answer goes back."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from ripstop.app.relocation import Relocated
from ripstop.engine.performers import Kind, Refused
from ripstop.kernel.effects import CallTool, ToolReturned
from ripstop.kernel.style import arguments_for
from ripstop.security.consent import Consents, TrustedFolders
from ripstop.styles.conversation.calls import SEARCH, SearchCall
from ripstop.styles.conversation.tools import own_tools
from ripstop.tools.toolbox import Toolbox
from tests.styles.conversation.chat_story import Story, bot, decision
from tests.tools.tool_requests import tool_request


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "knowledge").mkdir()
    return tmp_path / "knowledge"


def searched(story: Story) -> Story:
    """The search that a session waits for, done by the tool and recorded."""
    assert story.given.run is not None
    opened = story.given.run.open[story.given.opened(CallTool)]
    assert isinstance(opened.command, CallTool)
    request = tool_request(arguments_for(story.given.style, opened.state, opened.command), tool=opened.command.tool)
    answer = asyncio.run(own_tools()[opened.command.tool].perform(request))
    return story.answer(msgspec.json.decode(msgspec.json.encode(answer), type=ToolReturned))


def test_what_the_tool_finds_reaches_the_plan_and_the_prompt(folder: Path) -> None:
    (folder / "returns.md").write_text("# Returns\n\nWithin 30 days.", encoding="utf-8")
    (folder / "shipping.md").write_text("# Shipping\n\nBy bike.", encoding="utf-8")
    story = searched(Story(bot(knowledge=str(folder))).hear("How many days do I have?"))
    child = story.given.style.start_child(story.state, story.asked[0])
    assert child.arguments["passages"] == [["returns.md#Returns", "Within 30 days."]]
    searched(story.planned(decision("typing", "30 days.")).hear("And shipping?"))
    assert "[shipping.md#Shipping]\nBy bike." in story.prompt() and "[returns.md" not in story.prompt()


def test_a_search_that_finds_nothing_is_answered_without_passages(folder: Path) -> None:
    (folder / "returns.md").write_text("# Returns\n\nWithin 30 days.", encoding="utf-8")
    story = searched(Story(bot(knowledge=str(folder))).hear("xyzzy"))
    assert story.state.passages == () and story.asked


def test_a_search_brings_as_many_passages_as_the_bot_wants(folder: Path) -> None:
    for number in range(5):
        (folder / f"{number}.md").write_text(f"# Part {number}\n\nalpha", encoding="utf-8")
    story = searched(Story(bot(knowledge=str(folder), passages=2)).hear("alpha"))
    assert len(story.state.passages) == 2


def test_a_search_leaves_nothing_to_a_default() -> None:
    assert all(field.required for field in msgspec.structs.fields(SearchCall))


def test_the_tool_answers_with_passages_and_sources(folder: Path) -> None:
    (folder / "returns.md").write_text("# Returns\n\nWithin 30 days.", encoding="utf-8")
    tool = own_tools()[SEARCH]
    request = tool_request({"folder": str(folder), "query": "days?", "most": 3}, tool=SEARCH)
    answer = asyncio.run(tool.perform(request))
    assert answer == ToolReturned(value={"passages": [{"source": "returns.md#Returns", "text": "Within 30 days."}]})
    assert tool.kind(request.command) is Kind.PURE


def test_a_folder_that_only_a_journal_names_is_not_searched(folder: Path, tmp_path: Path) -> None:
    (folder / "private.md").write_text("alpha", encoding="utf-8")
    trusted = TrustedFolders(tmp_path / "j.db", tmp_path / "project", Consents(tmp_path / "state"))
    tools = Relocated(Toolbox(own=own_tools()), {}, trusted)
    request = tool_request({"folder": str(folder), "query": "alpha", "most": 5}, tool=SEARCH)
    with pytest.raises(Refused, match="was not named for this journal"):
        asyncio.run(tools.perform(request))
    trusted.remember(folder)
    assert asyncio.run(tools.perform(request)) == ToolReturned(
        {"passages": [{"source": "private.md", "text": "alpha"}]}
    )


@pytest.mark.parametrize(
    ("name", "says"), [("missing", "There is no"), ("file.md", "not a folder"), ("../x", "absolute")]
)
def test_a_folder_that_cannot_be_searched_is_the_definitions_fault(folder: Path, name: str, says: str) -> None:
    (folder / "file.md").write_text("x", encoding="utf-8")
    named = name if name == "../x" else str(folder / name)
    request = tool_request({"folder": named, "query": "x", "most": 5}, tool=SEARCH)
    with pytest.raises(Refused, match=says) as refused:
        asyncio.run(own_tools()[SEARCH].perform(request))
    assert refused.value.fault == "definition"
