"""A journal with hostile texts in every place that an agent, a tool, a person or a file can write to.

- Texts come in groups. A group has one run of each kind, and each of its texts is in every place of these runs that
  takes a text; where one place takes a single text (a document, a reason), they are joined.
- Names of people are checked where they enter, so here they have what a name may have. Ids of runs are ripstop's own.
- Everything on record was told to the real engine.
"""

import json
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import Struct

from ripstop.app.application import App
from ripstop.kernel.effects import AgentReplied, AskAgent, AskPerson, CallTool, Field, Say, ToolCall, ToolReturned
from ripstop.kernel.events import RunSettings
from ripstop.kernel.questions import MAX_NAME
from ripstop.styles.conversation.chats import Chats, run_of
from ripstop.styles.graph.definition import END, Agent, Graph, State, Transition
from ripstop.styles.handoff.service import open_documents
from ripstop.testing import Errands
from tests.faces.web.desk_browser import Desk
from tests.styles.blackboard import boards
from tests.styles.pipeline import pipelines
from tests.web.worlds import World

BREAK = "\n\n---\n\n"
LONGEST_MESSAGE = 20_000
TYPES = ("text", "number", "integer", "boolean", "one_of", "some_of")


class Group(Struct, frozen=True):
    index: int
    texts: tuple[str, ...]

    @property
    def all(self) -> str:
        return BREAK.join(map(_contained, self.texts))

    @property
    def names(self) -> list[str]:
        """The texts as names of people, without what no name may have."""
        return [name for text in self.texts if (name := as_name(text))]


def as_name(text: str) -> str:
    seen = "".join(char for char in text if unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp", "Cn"))
    return seen[:MAX_NAME].strip()


def _contained(text: str) -> str:
    """The text, as a quote if it may open a block of code: all after it would be in it."""
    opens = "```" in text or "~~~" in text
    return "\n".join(f"> {line}" for line in text.split("\n")) if opens else text


def grouped(texts: Sequence[str], size: int) -> list[Group]:
    slices = (tuple(texts[at : at + size]) for at in range(0, len(texts), size))
    return [Group(index, one) for index, one in enumerate(slices)]


def build(world: World, groups: Sequence[Group]) -> None:
    """Write all of it; nothing is at work afterwards."""
    for group in groups:
        write_workflows(world.folder, group)
        write_bot(world.folder, group)

    async def with_worker(app: App) -> None:
        documents = await open_documents(app, world.folder, lambda trouble: None)
        for group in groups:
            await talk(app, world.folder, group)
            await write_document(app, documents, group)

    async def without(desk: Desk) -> None:
        for group in groups:
            for tell in STORIES:
                await tell(desk, group)

    world.script([{"reply": "{}"}])
    world.work(with_worker)
    world.tell(without)


# Questions, reviews, calls in doubt, guards


async def questions(desk: Desk, group: Group) -> None:
    """What an agent said, and two questions about it: one with choices, one with fields."""
    index, texts, one = group.index, group.texts, group.texts[0]
    name = group.names[0] if group.names else ""
    choices = dict(zip(texts, reversed(texts), strict=True))
    first = AskPerson(question=group.all, title=group.all, to=name, about=(1, 3, 4), choices=choices, other=one)
    await desk.ask(f"question-{index}", AskAgent(agent=one, model=one), first, input=group.all, settings=settings(one))
    await desk.lead(f"question-{index}", AgentReplied(text=group.all, model=one))
    fields = {
        text: Field(label=texts[-1 - at], type=TYPES[at % len(TYPES)], allowed=texts)  # type: ignore[arg-type]
        for at, text in enumerate(texts)
    }
    await desk.ask(f"fields-{index}", AskPerson(question=one, title=one, choices=choices, fields=fields))
    answered = AskPerson(question=group.all, title=one, choices=choices, other=one, fields={one: Field(label=one)})
    await desk.ask(f"answered-{index}", answered, Say(text=group.all), Say(text=one, to=one))
    await desk.engine.answer(f"answered-{index}", 3, group.all, choice=texts[-1], fields={one: one}, by=name)


def settings(text: str) -> RunSettings:
    return RunSettings(model=text, base_url=text, workspace=text)


async def reviews(desk: Desk, group: Group) -> None:
    index, turned = group.index, BREAK.join(reversed(group.texts))
    await desk.review(f"review-{index}", group.all, turned, group.all, input=group.all)
    for person in (group.names or ["ann"])[:3]:
        (number,) = await desk.open_questions(f"review-{index}")
        await desk.engine.answer(f"review-{index}", number, group.all or "x", choice="feedback", by=person)


async def doubts(desk: Desk, group: Group) -> None:
    arguments = {**{text: text for text in group.texts}, "all": list(group.texts)}
    await desk.doubt(f"doubt-{group.index}", group.texts[0], group.all, **arguments)


async def guards(desk: Desk, group: Group) -> None:
    """A graph whose names are the texts, and whose agents go round until a guard asks a person."""
    texts = [f"{at}{text}" for at, text in enumerate(group.texts)]
    two = (texts * 2)[:2] if len(texts) > 1 else [texts[0], f"1{group.texts[0]}"]
    states = tuple(
        State(name, name, group.all, (Transition(END, "done"), Transition(other)))
        for name, other in zip(two, reversed(two), strict=True)
    )
    graph = Graph(
        name=texts[0],
        start=two[0],
        agents=tuple(Agent(name, tools=tuple(texts)) for name in two),
        states=states,
        guards={"then": "ask", "patience": 3},
        initial_message=group.all,
    )
    run = f"guard-{group.index}"
    await desk.engine.start(run, "graph", msgspec.json.encode(graph), input=group.all)
    calls = tuple(ToolCall(id=text, tool=text, arguments={text: text}) for text in group.texts[:3])
    await desk.lead(run, AgentReplied(text=group.all, calls=calls))
    for turn in range(30):
        if await desk.open_questions(run) or (await desk.engine.look(run)).run.ended:
            break
        said = {"content": group.all, "decisions": {**{text: text for text in group.texts}, "score": min(turn, 3)}}
        await desk.lead(run, AgentReplied(text=json.dumps(said)))


async def tools(desk: Desk, group: Group) -> None:
    """A run with tools whose names, arguments and values are the texts; then it is cancelled, with a reason."""
    run, one = f"tools-{group.index}", group.texts[0]
    calls = [CallTool(tool=text, agent=text, arguments={text: text}) for text in group.texts[:2]]
    await desk.ask(run, *calls, CallTool(tool="last", arguments={"all": list(group.texts)}), AskPerson(question="?"))
    values: list[Any] = [group.all, {text: text for text in group.texts}, list(group.texts)]
    for value in values[-len(calls) - 1 :]:
        await desk.lead(run, ToolReturned(value=value))
    await desk.engine.cancel(run, by=as_name(one), because=group.all)


async def halted(desk: Desk, group: Group) -> None:
    run = f"aside-{group.index}"
    await desk.engine.start(run, "errands", Errands(rounds=((AskAgent(agent=group.texts[0]),),)).content())
    await desk.engine.journal.set_aside(run, group.all)


# Boards and projects


async def a_board(desk: Desk, group: Group) -> None:
    run, texts = f"board-{group.index}", [text[:2000] for text in group.texts]  # what a decision can hold
    lines = [" ".join(text.split()) for text in texts]
    plan = "# Plan\n\n" + "".join(f"### M1-T{at}: {line}\n- status: {line[:30]}\n\n" for at, line in enumerate(lines))
    await desk.engine.start(run, "blackboard", msgspec.json.encode(boards.board()), input=group.all)
    await desk.lead(run, boards.opened(plan=plan, history=group.all))
    for number, text in enumerate(texts[:5], 1):
        agent = ("MAKER", "CHECKER")[number % 2]
        # key lines before the text, and with a word of their own: tags can hide what is in them, or behind them
        report = f"iteration: {number}\n结论：FAIL\n阻塞：db {lines[number - 1][:100]}\n\n{text}\n"
        await desk.lead(run, boards.decided(agent, f"why {text}", task=f"do {text}"), boards.written())
        await desk.lead(run, boards.said(report), boards.checked(), boards.written())


async def a_project(desk: Desk, group: Group) -> None:
    drafts = (f"# Draft\n{group.all}", f"# Draft\n{group.texts[0]}")
    await desk.project(f"project-{group.index}", *map(pipelines.said, drafts))


STORIES = (questions, reviews, doubts, guards, tools, halted, a_board, a_project)


# Conversations and documents


def bot_of(group: Group) -> str:
    return f"bot{group.index}"


def write_bot(folder: Path, group: Group) -> None:
    one = group.texts[0][:2000]
    bot = {"name": "Shop", "tone": one, "greeting": group.all[:2000], "sop": one, "constraints": one}
    place = folder / bot_of(group)
    place.mkdir()
    (place / "bot.yaml").write_text(yaml.safe_dump(bot, allow_unicode=False), encoding="utf-8")


async def talk(app: App, folder: Path, group: Group) -> None:
    """A conversation in which everybody says the texts, about a user whose profile holds them."""
    session, texts = "s", group.texts
    one, profile = texts[0][:2000], {text[:80]: text[:2000] for text in texts}
    plan = {"name": one, "tone": one, "greeting": group.all[:2000], "sop": one, "constraints": one}
    timers = [{"delay": 3600, "message": text[:500] or "x"} for text in texts[:3]]
    decisions: list[dict[str, Any]] = [
        _decision("processing", {"type": "SYSTEM", "target": "update_profile", "params": {**profile, "name": one}}),
        _decision("processing", {"type": "TOOL", "target": one, "params": profile}),
        _decision("typing", None, group.all[:LONGEST_MESSAGE] or "x"),
        _decision("transferred", {"type": "SYSTEM", "target": "handoff", "params": profile}, one),
    ]
    replies = [
        ("planner", {"plan": {**plan, "timers": timers}, "decision": decisions[0]}),
        *(("assistant", decision) for decision in decisions[1:]),
    ]
    script = folder / f"bot{group.index}.jsonl"
    lines = [{"agent": agent, "reply": json.dumps(reply)} for agent, reply in replies]
    script.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    chats, place = Chats(app), folder / bot_of(group)
    known = await chats.bots.get(place)
    run = run_of(known.bot.name, session)
    given, model = {"session": session}, f"script:{script}"
    await app.launch(known.workflow, run, given=given, workspace=folder / "w", pinned=known.pinned, model=model)
    for text in (group.all[:LONGEST_MESSAGE], *texts[:2]):
        if text.strip():
            await chats.tell(place, session, text[:LONGEST_MESSAGE], by=as_name(one))
            await app.wait(run)
    await chats.take(run, as_name(one) or "ann")
    for text in texts[:5]:
        if text.strip():
            await chats.speak(run, text[:LONGEST_MESSAGE], as_name(one) or "ann")


def _decision(status: str, action: Any, response: str | None = None) -> dict[str, Any]:
    return {"reasoning": "r", "next_status": status, "action": action, "response": response}


def chat_of(group: Group) -> str:
    return run_of(bot_of(group), "s")


async def write_document(app: App, documents: Any, group: Group) -> None:
    name = as_name(group.texts[0]) or "ann"
    made = await documents.new(group.all[:100_000], owner=name, creator=name, named=f"paper{group.index}")
    await app.wait(made.run)
    told = {"message": group.all[:2000], "next_action": group.texts[0][:500], "result": group.all[:2000]}
    await app.engine.act(made.run, "accept", {"message": group.all[:2000]}, by=name)
    await app.engine.act(made.run, "pass", {"to": name[:-1].strip() or "bob", **told}, by=name)
    await app.wait(made.run)


# Files


def workflows_of(group: Group) -> tuple[str, str]:
    """The names of the folders of its workflows; the second is hostile, too."""
    return f"files-{group.index}", f"broken-{group.index} {as_name(group.texts[0]).replace('/', '∕')[:60]}".strip(" .")


def write_workflows(folder: Path, group: Group) -> None:
    """Two workflows: one whose names are the texts, and one that is not YAML."""
    one = group.texts[0]
    text = {
        "name": f"files-{group.index}",
        "description": group.all,
        "initial_message": group.all,
        "max_turns": 3,
        one[:80] or "x": one,
        "agents": [{"name": f"a{at}{text[:80]}", "type": text[:80]} for at, text in enumerate(group.texts)],
        "states": [
            {
                "name": f"s{at}{text[:80]}",
                "agent": f"a{at}{text[:80]}",
                "start": at == 0,
                "prompt": text,
                "transitions": [{"to": text[:80], "condition": text[:200]}, {"to": "END", "condition": "done"}],
            }
            for at, text in enumerate(group.texts)
        ],
    }
    for name, content in zip(workflows_of(group), (yaml.safe_dump(text), group.all), strict=True):
        place = folder / "workflows" / name
        place.mkdir(parents=True)
        (place / "workflow.yaml").write_text(content, encoding="utf-8")
