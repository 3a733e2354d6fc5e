"""What the process that is killed has to do: every kind of command, effect and answer at least once.

- `graph-*`: two scripted agents take turns; `graph-risky` calls tools of all kinds, two at a time.
- `solo`: one thing after another, none of them unsafe, so that it must end exactly as if never killed.
- `risky`: one unsafe effect after another.
- `crowd`: many at a time.
- `parent`: starts a child run, and the child asks a person.
- `chat`: shows what its grandchild says and asks, and answers for the person.
- `planner-*`: two runs that wait for one named child, which ends with a result.
- `asker`: a tool that asks a person before it does anything.
- `doomed`: is cancelled when its grandchild waits for a person.
"""

import msgspec

from ripstop.engine.pinned_definitions import digest_of
from ripstop.kernel.effects import AskAgent, AskPerson, CallTool, Command, Say, SetTimer, StartRun
from ripstop.kernel.events import Pin
from ripstop.styles.graph.definition import END, Agent, Graph, State, Transition
from ripstop.testing.stub_style import Errands
from tests.engine.clerk_style import Clerk

PURE, KEYED, PROBEABLE, UNSAFE = KINDS = ("look_up", "pay", "post", "ring")
"""The tools, by kind of effect."""
ALLOWED = "allow"
"""A tool that asks a person first."""
CHANNEL = "crier"
DOOMED = "doomed"
"""The run that is cancelled, with all its descendants."""
EXACT = ("graph-calm", "solo")
"""Runs whose journal must be the same, killed or not, record by record."""


def _call(name: str, what: str) -> CallTool:
    return CallTool(tool=name, arguments={"what": what})


def _write(content: str) -> CallTool:
    return CallTool(tool="write_file", agent="helper", arguments={"path": "collab/notes.md", "content": content})


def _in_turn(*commands: Command) -> bytes:
    return Errands(rounds=tuple((command,) for command in commands)).content()


def _graph(name: str, writer: str, reviewer: str) -> bytes:
    prompt = "{{initial_message}} {{last_agent_content}}"
    return msgspec.json.encode(
        Graph(
            name=name,
            start="draft",
            agents=(Agent(name=writer, tools=KINDS), Agent(name=reviewer, tools=KINDS)),
            states=(
                State(name="draft", agent=writer, prompt=prompt, transitions=(Transition(to="review"),)),
                State(
                    name="review",
                    agent=reviewer,
                    prompt=prompt,
                    transitions=(Transition(to=END, condition="good"), Transition(to="draft", condition="NOT good")),
                ),
            ),
            initial_message="Write a page.",
            max_turns=20,
        )
    )


def _says(agent: str, content: str, good: bool = False) -> dict[str, object]:
    control = msgspec.json.encode({"content": content, "decisions": {"good": good}}).decode()
    return {"agent": agent, "reply": control, "usage": {"input_tokens": 7, "output_tokens": 5}}


def _calls(agent: str, *names: str) -> dict[str, object]:
    return {"agent": agent, "calls": [{"tool": name, "args": {"what": f"{agent}'s page"}} for name in names]}


_LINES = [
    _calls("writer", PURE),
    _says("writer", "first draft"),
    {"agent": "reviewer", "error": "rate_limit"},
    _says("reviewer", "more"),
    _calls("writer", PROBEABLE),
    _says("writer", "second draft"),
    _calls("reviewer", KEYED),
    _says("reviewer", "fine", good=True),
    _calls("hasty", UNSAFE, KEYED),
    _says("hasty", "quick draft"),
    _calls("critic", PURE, PROBEABLE),
    _says("critic", "no"),
    _calls("hasty", UNSAFE, UNSAFE),
    {"agent": "hasty", "error": "rate_limit"},
    _says("hasty", "quick again"),
    _says("critic", "so be it", good=True),
    *(line for n in range(4) for line in ({"agent": "helper", "error": "timeout"}, _says("helper", f"helped {n}"))),
]
SCRIPT = "".join(msgspec.json.encode(line).decode() + "\n" for line in _LINES)

_PLANNER = Clerk(rounds=((StartRun(workflow="plan", name="plan:7"),),)).content()

RUNS: dict[str, tuple[str, bytes]] = {
    "graph-calm": ("graph", _graph("calm", "writer", "reviewer")),
    "graph-risky": ("graph", _graph("risky", "hasty", "critic")),
    "solo": (
        "errands",
        _in_turn(
            _call(PURE, "a name"),
            _call(KEYED, "a bill"),
            SetTimer(name="tea", after=0.03),
            _call(PROBEABLE, "a letter"),
            Say(text="half way", channel=CHANNEL),
            _write("half way\n"),
            AskAgent(agent="helper"),
            AskAgent(agent="helper"),
            AskPerson(question="Go on?", choices={"yes": "", "no": ""}),
            _call(PURE, "a place"),
            AskAgent(agent="helper"),
            AskAgent(agent="helper"),
            _write("done\n"),
            Say(text="done", channel=CHANNEL),
        ),
    ),
    "risky": ("errands", _in_turn(*(_call(UNSAFE, f"bell {n}") for n in range(4)), _call(PROBEABLE, "a card"))),
    "crowd": (
        "errands",
        Errands(
            rounds=tuple(
                (
                    *(_call(name, f"{name} {part}") for name in (PURE, KEYED, PROBEABLE, UNSAFE, UNSAFE)),
                    SetTimer(name="pause", after=0.02),
                    Say(text=f"part {part}", channel=CHANNEL),
                    _write(f"part {part}\n"),
                )
                for part in range(2)
            )
        ).content(),
    ),
    "parent": (
        "errands",
        _in_turn(StartRun(workflow="child"), _call(UNSAFE, "the gong"), StartRun(workflow="child")),
    ),
    "chat": (
        "clerk",
        Clerk(rounds=((StartRun(workflow="flow", surface=True),),), answers_children=True).content(),
    ),
    "planner-1": ("clerk", _PLANNER),
    "planner-2": ("clerk", _PLANNER),
    "asker": ("errands", _in_turn(_call(ALLOWED, "a door"), _call(KEYED, "a key"))),
    DOOMED: ("errands", _in_turn(StartRun(workflow="doomed-flow"))),
}
"""Name → (style, definition)."""

CHILDREN: dict[str, tuple[str, bytes]] = {
    "child": ("errands", _in_turn(_call(KEYED, "a toy"), AskPerson(question="May I?"), _call(UNSAFE, "a bell"))),
    "flow": ("errands", _in_turn(_call(PURE, "a map"), StartRun(workflow="leaf"))),
    "leaf": (
        "errands",
        _in_turn(
            Say(text="Here I am."),
            AskPerson(question="Left or right?", choices={"left": "", "right": ""}),
            _call(KEYED, "a ticket"),
        ),
    ),
    "plan": ("clerk", Clerk(rounds=((_call(PROBEABLE, "a plan"),),), result={"steps": 3}).content()),
    "doomed-flow": ("errands", _in_turn(_call(KEYED, "a start"), StartRun(workflow="doomed-leaf"))),
    "doomed-leaf": ("errands", _in_turn(_call(PURE, "a look"), AskPerson(question="Shall this end?"))),
}
PINNED = msgspec.json.encode(
    {
        digest_of(content): {name: Pin(child, digest_of(body)) for name, (child, body) in CHILDREN.items()}
        for _, content in (*RUNS.values(), *CHILDREN.values())
    }
)
DEFINITIONS = {digest_of(content): content for _, content in CHILDREN.values()}
