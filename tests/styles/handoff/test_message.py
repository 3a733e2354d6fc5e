"""Messages between agents and the documents inside them; and whatever documents a grammar of foreign ones makes.

The grammar stands here for both tests: what is written reads back, and nothing else changes.
"""

from collections.abc import Callable
from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripstop.styles.handoff.document import (
    SECTIONS,
    STATUSES,
    HandoffDocument,
    Malformed,
    interactions,
    oddities,
    read,
    write,
)
from ripstop.styles.handoff.message import TYPES, HandoffMessage, embedded, read_message, write_message
from ripstop.styles.handoff.state import draft

# What both tests read: a document, the noise that agents put into texts, a grammar of foreign documents

SHORT = """# Workflow: bread_007
Status: in_progress
Current_Owner: Mira
Previous_Owner: Otto
Created_At: 2031-05-04 06:00:00
Updated_At: 2031-05-04 06:20:00
Interaction_Count: 1

## Task
Bake a loaf of rye.

## History
- 2031-05-04 06:00:00 Otto wrote it down pending→pending
- 2031-05-04 06:20:00 Mira took it pending→in_progress

## Next_Action
Mira heats the oven

## Termination_Conditions
- the loaf is baked
- more than 6 interactions
"""

FRAGMENTS = [
    "",
    "   ",
    "面粉：500克",
    "## Task",
    "## History",
    "## Next_Action",
    "## Termination_Conditions",
    "## Workflow Document",
    "## Notes",
    "### Task",
    "### Workflow: inner",
    "# Workflow: inner",
    "##",
    "##Task",
    " ## Task",
    "\\## Task",
    "\\\\## Task",
    "\\# x",
    "```",
    "````",
    "```python",
    "  ```",
    "``` a ` b",
    "\\```",
    "  \\\\~~~",
    "~~~",
    "~~~~ x",
    "Status: completed",
    "Current_Owner：Eve",
    "From: Eve",
    "- ",
    "- 2031-05-04 07:00:00 Otto looked pending→pending",
    "- 2031-05-04 07:00:00 奥托 看了 pending -> in_progress",
    "* 2031-05-04 07:00:00 Otto completed it pending→completed",
    "  more about the point",
    "\ufeff",
]

fragments = st.sampled_from(FRAGMENTS) | st.text(
    st.characters(exclude_characters="\0", exclude_categories=()), max_size=12
)
noise = st.builds("\n".join, st.lists(fragments, max_size=9))
"""Any text that an agent may want to write."""

_known = st.sampled_from(("Task", "History", "Next_Action", "Termination_Conditions", "Notes"))
_section = st.builds(lambda name, body: [f"## {name}", *body], _known, st.lists(fragments, max_size=6))
_header = st.sampled_from(
    (
        "Status: pending|Current_Owner: Mira",
        "Status：completed|Oven: hot|Current_Owner ：Mira|Updated_At: |Previous_Owner: 奥托",
        "|Interaction_Count: 3|Oven: hot|Current_Owner: Mira|  Status:\tin_progress  |Created_At:",
    )
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Foreign documents, with mixed line ends, odd order and noise."""
    lines = ["# Workflow: bread_007", *draw(_header).split("|"), "", *draw(st.lists(fragments, max_size=2))]
    lines += [line for section in draw(st.lists(_section, max_size=6)) for line in section]
    ends = cycle(draw(st.sampled_from((("\n",), ("\r\n",), ("\n", "\n", "\r\n"), ("\r\n", "\n")))))
    text = "".join(line + end for line, end in zip(lines, ends, strict=False))
    bom, cut = draw(st.sampled_from(("", "\ufeff"))), draw(st.booleans())
    return bom + (text.rstrip("\r\n") if cut else text)


TIME = "2031-05-04 08:00:00"


def cleaned(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


# Messages

HEAD = "# Message\nFrom: Otto\nTo: Mira\nTime: 2031-05-04 06:00:00\n"


def test_reads_a_message() -> None:
    message = read_message(f"{HEAD}Type: workflow_reply\nTitle: Rye\n\nIt is baked.\n\nCome and eat.\n")
    assert message == HandoffMessage(
        "Otto", "Mira", "It is baked.\n\nCome and eat.", "2031-05-04 06:00:00", "workflow_reply", "Rye"
    )


@pytest.mark.req("S0-19")
@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("From: 奥托\nTo: 米拉\nAnswer: 烤好了", "烤好了"),
        ("From：奥托\r\nTo：米拉\r\nContent：烤好了\r\n", "烤好了"),
        ("\ufeff\n# Message\n\nFrom: 奥托\nTo: 米拉\n\n烤好了\n", "烤好了"),
        ("From: 奥托\nTo: 米拉\nAnswer: 烤好了\n可以吃\n", "烤好了\n可以吃"),
        ("From: 奥托\nTo: 米拉\n面包：烤好了\n可以吃\n", "面包：烤好了\n可以吃"),
        ("From: 奥托\nTo: 米拉\n", ""),
    ],
)
def test_reads_messages_as_agents_really_write_them(text: str, body: str) -> None:
    assert read_message(text) == HandoffMessage("奥托", "米拉", body, answers="Answer" in text)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "the message is empty"),
        ("\ufeff\n \n", 1, "the message is empty"),
        ("Hello!\n", 1, "`From:` is missing"),
        ("# Message\nTo: Mira\n\nFrom: Otto\n", 1, "`From:` is missing"),
        ("# Message\nFrom: Otto\nTo:\n", 3, "`To:` is missing or empty"),
        (HEAD + "From: Eve\n", 5, "first in line 2"),
        (HEAD + "Type: letter\n", 5, "`workflow`, `workflow_reply` or `normal`"),
        (HEAD + "\n\0", 6, "NUL"),
        (HEAD + "Type: workflow\n\n## Workflow Document\n### Workflow w\nStatus: pending\n", 7, "`### Workflow: <id>`"),
    ],
)
def test_refuses_what_is_no_message_and_says_what_would_be_right(text: str, line: int, words: str) -> None:
    with pytest.raises(Malformed) as refused:
        read_message(text)
    assert refused.value.line == line and words in refused.value.reason


LEVELS = {
    "title at three": lambda text: text.replace("## ", "### ").replace("# Workflow", "### Workflow", 1),
    "title at two": lambda text: text.replace("## ", "### ").replace("# Workflow", "## Workflow", 1),
    "only sections deeper": lambda text: text.replace("## ", "### "),
    "as in a file": lambda text: text,
}


@pytest.mark.req("S0-2")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_lifts_the_document_out_of_a_message(level: str, newline: str) -> None:
    text = f"{HEAD}Type: workflow\n\nPlease.\n\n## Workflow Document\n\n{LEVELS[level](SHORT)}"
    message = read_message(text.replace("\n", newline))
    assert (message.body, message.document) == ("Please.", SHORT)
    assert read(message.document).owner == "Mira"


def test_a_heading_behind_the_document_is_body_again() -> None:
    message = read_message(f"{HEAD}\n## Workflow Document\n{embedded(SHORT)}\n\n## Greetings\nBye.\n")
    assert (message.body, message.document) == ("## Greetings\nBye.", SHORT)


def test_a_heading_without_a_document_is_body() -> None:
    assert read_message(f"{HEAD}\n## Workflow Document\nis missing\n").body == "## Workflow Document\nis missing"


def test_headings_in_fenced_code_keep_their_level() -> None:
    document = SHORT.replace("Bake", "```\n## x\n### y\n```\n### Deep\n# High\n\\## Escaped\nBake")
    assert "```\n## x\n### y\n```\n#### Deep\n# High\n\\## Escaped\n" in embedded(document)
    assert read_message(write_message(HandoffMessage("Otto", "Mira", document=document))).document == document


@pytest.mark.req("S0-66")
@given(
    st.builds(
        HandoffMessage,
        sender=noise,
        to=noise,
        body=noise,
        time=noise,
        type=st.sampled_from(TYPES),
        title=noise,
        document=documents(),
    )
)
def test_a_message_written_reads_back_as_the_same(message: HandoffMessage) -> None:
    try:
        text = write_message(message)
    except Malformed:
        assert not message.sender.strip() or not message.to.strip()
        return
    found = read_message(text)
    assert found.body == cleaned(message.body)
    for one, other in ((found.sender, message.sender), (found.to, message.to), (found.title, message.title)):
        assert one.split() == other.split()
    assert found.type == message.type
    assert write_message(found) == text
    assert read_message(write_message(found)) == found


@pytest.mark.req("S0-66")
@given(documents(), noise)
def test_a_document_in_a_message_stays_the_same(text: str, body: str) -> None:
    text = text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    found = read_message(write_message(HandoffMessage("Otto", "Mira", body, document=text)))
    assert found.document == text.strip() + "\n"
    assert write(read(found.document)) == found.document


@given(st.text() | noise)
def test_no_text_gives_another_error(text: str) -> None:
    for tried in (
        text,
        HEAD + text,
        f"{HEAD}\n## Workflow Document\n{text}",
        f"{HEAD}\n## Workflow Document\n# Workflow: {text}",
    ):
        try:
            message = read_message(tried)
        except Malformed:
            continue
        assert read_message(write_message(message)) == message


def test_what_is_no_document_is_not_sent_as_one() -> None:
    with pytest.raises(Malformed, match="cannot be sent as one"):
        write_message(HandoffMessage("Otto", "Mira", document="Hello"))


# Documents of the grammar


def values(paper: HandoffDocument) -> dict[str, object]:
    """All that a paper says, without where it stands."""
    paper = paper.gathered()
    names = (
        "bom",
        "id",
        "status",
        "owner",
        "previous",
        "created",
        "updated",
        "count",
        "task",
        "next_action",
        "conditions",
    )
    found: dict[str, object] = {name: getattr(paper, name) for name in names}
    found["headers"] = [(header.key, header.value) for header in paper.headers]
    found["history"] = [bullet.raw for bullet in paper.history]
    found["others"] = ["".join(paper.lines[s.start : s.end]).strip() for s in paper.sections if s.name not in SECTIONS]
    return found


def in_one_line(text: str) -> str:
    return " ".join(filter(None, (part.strip() for part in cleaned(text).split("\n"))))


@pytest.mark.req("S0-66")
@given(documents(), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 9), fragments), max_size=5))
def test_a_damaged_document_is_refused_or_kept_whole(text: str, cuts: list[tuple[float, int, str]]) -> None:
    assert write(read(text)) == text
    for where, length, instead in cuts:
        at = int(where * len(text))
        text = text[:at] + instead + text[at + length :]
    survives(text)


@given(st.text() | noise)
def test_no_document_gives_another_error(text: str) -> None:
    survives(text)
    survives(SHORT[:62] + text)


def survives(text: str) -> None:
    try:
        paper = read(text)
    except Malformed:
        return
    assert write(paper) == text
    oddities(paper)
    interactions(paper)


CHANGES: dict[str, Callable[[HandoffDocument, str], HandoffDocument]] = {
    "task": HandoffDocument.with_task,
    "next_action": HandoffDocument.with_next_action,
    "Result": lambda paper, text: paper.with_section("Result", text),
}


@pytest.mark.req("S0-9", "S0-14", "S0-19", "S0-56", "S0-66")
@pytest.mark.parametrize("what", CHANGES)
@given(text=noise | st.text(), foreign=documents())
def test_any_text_reads_back_and_changes_nothing_else(what: str, text: str, foreign: str) -> None:
    text = text.replace("\0", "")
    paper = read(foreign)
    changed = CHANGES[what](paper, text)
    assert (changed.section(what) if what == "Result" else getattr(changed, what)) == cleaned(text)
    before, after = values(paper), values(changed)
    if what == "Result":
        assert len(after["others"]) == len(before["others"]) + 1  # type: ignore[arg-type]  # both are lists
    others = "others" if what == "Result" else what
    unchanged = [key for key in before if key not in (what, others)]
    assert [after[key] for key in unchanged] == [before[key] for key in unchanged]
    assert values(CHANGES[what](changed, text)) == after


@pytest.mark.req("S0-66")
@given(documents(), noise)
def test_a_text_that_is_there_is_replaced_and_every_other_line_stays(foreign: str, text: str) -> None:
    paper = read(foreign).gathered()  # records at the end go into the history first
    for section in paper.sections:
        if section.name not in ("Task", "Next_Action"):
            continue
        changed = write(paper.with_section(section.name, text)).removeprefix("\ufeff")
        assert changed.startswith("".join(paper.lines[: section.start + 1]))
        assert changed.endswith("".join(paper.lines[section.end :]))


@pytest.mark.req("S0-15", "S0-17")
@given(documents(), st.lists(noise))
def test_any_conditions_read_back_and_change_nothing_else(foreign: str, conditions: list[str]) -> None:
    paper = read(foreign)
    changed = paper.with_conditions(conditions)
    wanted = [in_one_line(one) for one in conditions]
    assert changed.conditions == tuple(filter(None, wanted))
    assert values(changed) | {"conditions": paper.conditions} == values(paper)


@pytest.mark.req("S0-11", "S0-12", "S0-19", "S0-54")
@given(documents(), st.text(), noise, st.sampled_from(STATUSES), st.sampled_from(STATUSES))
def test_any_record_reads_back_and_changes_nothing_else(
    foreign: str, agent: str, action: str, before: str, after: str
) -> None:
    paper = read(foreign)
    changed = paper.with_bullet(TIME, agent, action, before, after)
    *old, new = changed.history
    assert [bullet.raw for bullet in old] == [bullet.raw for bullet in paper.history]
    assert (new.at, new.before, new.after) == (TIME, before, after)
    assert new.agent and new.agent == "_".join(agent.replace("\0", "\ufffd").split() or ["_"])
    assert new.action == in_one_line(action)
    assert values(changed) | {"history": 0} == values(paper) | {"history": 0}


@pytest.mark.req("S0-53", "S0-55")
@given(documents(), st.sampled_from(("Current_Owner", "Previous_Owner", "Updated_At", "Oven", "Shape")), noise)
def test_any_header_value_reads_back_and_changes_nothing_else(foreign: str, key: str, value: str) -> None:
    paper = read(foreign)
    changed = paper.with_header(key, f"x{value}")
    wanted = in_one_line(f"x{value}")
    assert dict(values(changed)["headers"])[key] == wanted  # type: ignore[call-overload]  # they are pairs
    same = ("task", "history", "next_action", "conditions", "others", "status", "created", "count")
    assert [values(changed)[name] for name in same] == [values(paper)[name] for name in same]


@pytest.mark.req("S0-2", "S0-4", "S0-66")
@given(st.text(), st.text(), st.text(), noise)
def test_a_new_document_reads_back_or_is_refused(id: str, creator: str, owner: str, task: str) -> None:
    try:
        paper = draft(id, creator, owner, task, TIME)
    except Malformed:
        assert not owner.strip() or not id.strip()
        return
    assert read(write(paper)) == paper
    assert paper.task == cleaned(task)
