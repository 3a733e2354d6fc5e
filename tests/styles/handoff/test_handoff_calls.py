"""What the hand-off style asks of its tools: each call is performed by the real tool, and its answer goes back."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ripstop.kernel.effects import CallTool, ToolReturned
from ripstop.kernel.events import FORMAT, RunSettings, Started, Warned
from ripstop.kernel.style import arguments_for
from ripstop.styles.handoff.calls import PUBLISH, SEND, PublishCall, PublishedDocument, SendCall, SentReply
from ripstop.styles.handoff.definition import Policy
from ripstop.styles.handoff.document import read, write
from ripstop.styles.handoff.events import EditAccepted, EditRefused, TransitionRequested
from ripstop.styles.handoff.message import read_message
from ripstop.styles.handoff.publisher import own_tools
from ripstop.styles.handoff.state import HandoffState, draft
from ripstop.styles.handoff.style import HandoffStyle
from ripstop.testing import given
from ripstop.testing.scenarios import Given
from tests.tools.tool_requests import tool_request

STYLE = HandoffStyle()
TOOLS = own_tools()
FILE = "f.md"


class Office:
    """A run whose commands are performed by the real tools, in a real folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        text = write(draft("calc", "boss", "ann", "What is 2 + 2?", "2026-01-01 10:00:00"))
        arguments = {"is_document": True, "file": FILE, "reply_to": "boss"}
        started = Started(style="handoff", definition="definition", format=FORMAT, input=text, arguments=arguments)
        self.story: Given = given(STYLE, Policy(), started)
        self.performed: list[tuple[str, Any]] = []
        """The tools that were called, and what they answered."""

    @property
    def file(self) -> Path:
        return self.root / ".workflows" / FILE

    @property
    def state(self) -> HandoffState:
        assert self.story.run is not None
        state: HandoffState = self.story.run.state
        return state

    def perform(self) -> None:
        """Perform what is open, as a worker would, until nothing is."""
        assert self.story.run is not None
        while self.story.run.open:
            (opened,) = self.story.run.open.values()
            command = opened.command
            assert isinstance(command, CallTool)
            arguments = arguments_for(STYLE, opened.state, command)
            settings = RunSettings(folder=str(self.root))
            request = tool_request(arguments, self.story.run_id, command.tool, settings)
            answer = asyncio.run(TOOLS[command.tool].perform(request))
            assert isinstance(answer, ToolReturned)
            self.performed.append((command.tool, answer.value))
            self.story.tell(msgspec.json.decode(msgspec.json.encode(answer), type=ToolReturned))

    def request(self, action: str, **words: str) -> None:
        self.story.tell(TransitionRequested(action=action, by="ann", **words))
        self.perform()

    def decided(self, kind: type) -> list[Any]:
        return [record.event for record in self.story.records if isinstance(record.event, kind)]


@pytest.fixture
def office(tmp_path: Path) -> Office:
    office = Office(tmp_path)
    office.perform()
    return office


@pytest.mark.req("S0-58", "S0-61")
def test_a_document_is_published_edited_completed_and_answered_by_the_real_tools(office: Office) -> None:
    assert office.file.read_text(encoding="utf-8") == write(office.state.document)
    office.request("accept")
    office.request("complete", result="4")
    assert office.story.run is not None and office.story.run.ended
    assert [tool for tool, _ in office.performed] == [PUBLISH, PUBLISH, PUBLISH, SEND]
    assert {tool for tool, _ in office.performed} == {*TOOLS}
    assert read(office.file.read_text(encoding="utf-8")).status == "completed"
    (message,) = (office.root / ".inbox" / "boss").glob("*.md")
    assert "4" in read_message(message.read_text(encoding="utf-8")).body
    assert msgspec.convert(office.performed[-1][1], SentReply) == SentReply("boss")


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [("What is 2 + 2?", "What is 3 + 3?", EditAccepted), ("Status: in_progress", "Status: pending", EditRefused)],
)
def test_an_edit_that_the_tool_finds_is_read_back_by_the_style(
    office: Office, old: str, new: str, verdict: type
) -> None:
    office.request("accept")
    base = office.state.views[-1][0]
    edit = office.file.read_text(encoding="utf-8").replace(old, new)
    office.file.write_text(edit, encoding="utf-8")
    office.story.tell(TransitionRequested(action="pass", by="ann", to="bob"))
    office.perform()
    found = [msgspec.convert(value, PublishedDocument) for _, value in office.performed][2]
    assert (found.done, found.found, found.base) == ("edited", edit, base)
    assert len(office.decided(verdict)) == 1 and office.state.document.owner == "bob"
    assert office.file.read_text(encoding="utf-8") == write(office.state.document)
    assert office.state.document.task == read(edit).task
    assert bool([*office.file.parent.glob("*.refused-*")]) is (verdict is EditRefused)


def test_an_edit_that_a_killed_process_left_is_kept_and_told(office: Office) -> None:
    (left,) = (office.root / ".workflows" / ".ripstop" / "seen").iterdir()
    replacing = left.parent.parent / "replacing"
    replacing.mkdir(exist_ok=True)
    (replacing / left.stem).write_text("by hand", encoding="utf-8")
    office.request("accept")
    answer = msgspec.convert(office.performed[-1][1], PublishedDocument)
    assert answer.done == "written" and (office.file.parent / answer.kept).read_text(encoding="utf-8") == "by hand"
    assert [answer.kept in warned.text for warned in office.decided(Warned)] == [True]


def test_a_view_that_is_there_already_is_not_written_again(office: Office) -> None:
    office.story.tell(TransitionRequested(action="assign", by="ann", to="bob"))
    office.perform()
    arguments = arguments_for(STYLE, office.state, CallTool(tool=PUBLISH))
    request = tool_request(arguments, office.story.run_id, PUBLISH, RunSettings(folder=str(office.root)))
    answer = asyncio.run(TOOLS[PUBLISH].perform(request))
    assert answer == ToolReturned(value={"file": FILE, "done": "newer"})


@pytest.mark.parametrize("call", [PublishCall, SendCall])
def test_a_call_leaves_nothing_to_a_default(call: type[msgspec.Struct]) -> None:
    assert all(field.required for field in msgspec.structs.fields(call))


@pytest.mark.parametrize(
    ("recorded", "meant"),
    [
        ({"file": FILE, "done": "written"}, PublishedDocument(file=FILE, done="written")),
        ({"file": FILE, "done": "newer", "kept": "k"}, PublishedDocument(file=FILE, done="newer", kept="k")),
        (
            {"file": FILE, "done": "edited", "found": "", "base": 0},
            PublishedDocument(file=FILE, done="edited", found="", base=0),
        ),
        ({"to": "boss"}, SentReply("boss")),
    ],
)
def test_answers_are_recorded_as_they_always_were(recorded: dict[str, Any], meant: msgspec.Struct) -> None:
    assert msgspec.to_builtins(meant) == recorded
    assert msgspec.convert(recorded, type(meant)) == meant
