"""A journal with runs of every kind that waits for a person, and people who look at it with a browser without script.

The application is the real one. The door in front of it is not: who sends a request is what a test says.
"""

import html
import re
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec

from ripstop.app.application import App
from ripstop.app.plugin import Plugin
from ripstop.app.plugins import BUILT_IN, Plugins
from ripstop.app.settings.settings_file import Settings
from ripstop.engine.engine import Engine
from ripstop.faces.http.door import BY
from ripstop.faces.web.application import WebFace
from ripstop.faces.web.sessions import SESSION, WebSession, WebSessions
from ripstop.kernel.effects import AgentReplied, Answer, AskAgent, AskPerson, CallTool, Command, Limits
from ripstop.kernel.events import Answered, CallRefused, Doubted
from ripstop.styles.conversation.chats import Chats
from ripstop.styles.graph.definition import END, Agent, Graph, State, Transition
from ripstop.styles.pipeline.calls import ShownCode
from ripstop.styles.pipeline.definition import Pipeline
from ripstop.testing import Errands
from tests.faces.cli import review_style
from tests.faces.cli.review_style import Drafts
from tests.faces.http.requests_to import request
from tests.styles.conversation.http.served_bot import write_bot
from tests.styles.loops import says
from tests.styles.pipeline import pipelines

PLUGINS = (*BUILT_IN, review_style.PLUGIN, Plugin(name="errands", kits=("ripstop.testing.stub_style:ERRANDS",)))
TOKEN = "t0ken-" + "z" * 40


class Page(NamedTuple):
    status: int
    headers: dict[str, str]
    html: str

    @property
    def text(self) -> str:
        """What a reader sees: without tags, and on one line."""
        return " ".join(html.unescape(re.sub(r"<[^>]*>", "", self.html)).split())

    @property
    def to(self) -> str:
        """Where it leads."""
        return self.headers.get("location", "")

    def values(self, name: str) -> list[str]:
        """The values of the inputs of that name."""
        found = re.findall(rf'<input[^>]* name="{re.escape(name)}"[^>]*>', self.html)
        return [html.unescape(match[1]) for one in found if (match := re.search(r' value="([^"]*)"', one))]


class Person:
    """A person who is signed in."""

    def __init__(self, face: WebFace, by: str) -> None:
        self._face = face
        self._session = WebSession(by, secrets.token_urlsafe(8), 2**40)
        self.by = by

    async def get(self, path: str, **headers: str) -> Page:
        return await self._send("GET", path, headers)

    async def post(self, path: str, fields: Mapping[str, str], **headers: str) -> Page:
        token = self._face.site.sessions.form_token(self._session)
        body = urlencode({"csrf": token, "intent": secrets.token_urlsafe(16), **fields}).encode()
        return await self._send("POST", path, {"content-type": "application/x-www-form-urlencoded", **headers}, body)

    async def _send(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> Page:
        plain, _, query = path.partition("?")
        who: dict[str, Any] = {BY: self.by, SESSION: self._session}
        reply = await request(
            self._face.asgi,
            [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
            method=method,
            path=plain,
            body=(body,),
            query_string=query.encode(),
            **who,
        )
        return Page(reply.status, reply.headers, reply.body.decode())


class Desk:
    def __init__(self, app: App, look_only: bool = False) -> None:
        self.app = app
        self.face = WebFace(app, WebSessions(TOKEN, "ann", 8517), look_only)
        self.ann, self.bob = Person(self.face, "ann"), Person(self.face, "bob")

    @property
    def engine(self) -> Engine:
        return self.app.engine

    async def ask(self, run: str, *asks: Command, **options: Any) -> None:
        """Start a run that gives these commands, one after the other."""
        await self.engine.start(run, "errands", Errands(rounds=tuple((ask,) for ask in asks)).content(), **options)

    async def review(self, run: str, *drafts: str, to: str = "", input: str = "") -> None:
        await self.engine.start(run, "drafts", msgspec.json.encode(Drafts(drafts, to)), input=input)

    async def doubt(self, run: str, tool: str = "deploy", evidence: str = "Its worker died.", **arguments: Any) -> None:
        """Start a run with a call that is in doubt: `run/3`, and the question about it `run/5`."""
        await self.ask(run, CallTool(tool=tool, arguments=arguments))
        await self.engine.tell_fact(run, Doubted(to=3, evidence=evidence))

    async def refused(self, run: str, reason: str = "No answer.") -> None:
        """Start a run with a call that is refused: `run/3`, and the question about it `run/5`."""
        await self.ask(run, AskAgent(agent="ada"))
        await self.engine.tell_fact(run, CallRefused(to=3, reason=reason, by="acme", pauses=True))

    async def project(self, run: str, *drafts: AgentReplied) -> None:
        """Start a pipeline whose requirements are reviewed, draft after draft; each but the last gets feedback."""
        definition = msgspec.json.encode(pipelines.FLOW)
        await self.engine.start(run, "pipeline", definition, input="a to-do list in the browser")
        await self.lead(run, pipelines.OPENED, pipelines.begun(), pipelines.said("# Idea"), pipelines.WRITTEN)
        await self.lead(run, pipelines.FINISHED, pipelines.begun(idea="# Idea"))
        for place, draft in enumerate(drafts, 1):
            await self.lead(run, draft, pipelines.WRITTEN)
            if place < len(drafts):
                (number,) = await self.open_questions(run)
                await self.engine.answer(run, number, "Too big.", fields={"severity": "major"}, by="ann")
                await self.lead(run, pipelines.WRITTEN, pipelines.begun(idea="# Idea"))

    async def code_review(self, run: str) -> None:
        """Start a pipeline whose code waits for its review."""
        coding = next(one for one in pipelines.FLOW.stages if one.writes_code)
        definition = msgspec.json.encode(Pipeline("code", (coding,)))
        await self.engine.start(run, "pipeline", definition, input="a to-do list in the browser")
        await self.lead(run, pipelines.OPENED, pipelines.begun(), pipelines.said("# What I write"), pipelines.WRITTEN)
        (number,) = await self.open_questions(run)
        await self.engine.answer(run, number, choice="pass", by="ann")
        shown = ShownCode("# The code\n\n## app.js (new, 8 bytes)\n\n```diff\n+eval(1)\n```\n", 1)
        await self.lead(
            run, pipelines.WRITTEN, pipelines.begun(), pipelines.said("Written."), pipelines.returned(shown)
        )

    async def cycle(self, run: str) -> None:
        """Start a graph of two agents who make progress once and then go round, until the guard asks a person."""
        names = {"write": "writer", "review": "reviewer"}
        states = tuple(
            State(name, agent, "Go.", (Transition(END, "done"), Transition(other)))
            for (name, agent), other in zip(names.items(), reversed(names), strict=True)
        )
        agents = tuple(Agent(agent) for agent in names.values())
        graph = Graph(name="essay", start="write", agents=agents, states=states, guards={"then": "ask", "patience": 3})
        await self.engine.start(run, "graph", msgspec.json.encode(graph))
        for score in (1, 2, *[3] * 20):
            if await self.open_questions(run):
                break
            await self.lead(run, says("Over to you.", score=score))

    async def handed_over(self, folder: Path, session: str, text: str, by: str = "ann") -> str:
        """A conversation that a person has taken; returns its run."""
        if not (folder / "shop").exists():
            write_bot(folder)
        chats = Chats(self.app)
        run = await chats.tell(folder / "shop", session, text, by=session, id="m1")
        await chats.take(run.id, by)
        return run.id

    async def guard(self, run: str, limits: Limits, *commands: Command) -> None:
        """Start a run whose guards ask a person."""
        await self.ask(run, *commands, limits=limits, guards={"then": "ask"})

    async def lead(self, run: str, *answers: Answer) -> None:
        """Answer what a run asks of agents and tools, in order."""
        for answer in answers:
            opened = (await self.engine.look(run)).run.open
            number = next(n for n, one in opened.items() if not isinstance(one.command, AskPerson))
            await self.engine.tell_fact(run, Answered(to=number, answer=answer))

    async def open_questions(self, run: str) -> list[int]:
        opened = (await self.engine.look(run)).run.open
        return [number for number, one in opened.items() if isinstance(one.command, AskPerson)]

    async def answers(self, run: str) -> list[Any]:
        """What people answered in a run."""
        events = [record.event for record in await self.engine.journal.read(run)]
        said = [event.answer for event in events if isinstance(event, Answered)]
        return [answer for answer in said if type(answer).__name__ == "PersonAnswered"]


@asynccontextmanager
async def a_desk(folder: Path, look_only: bool = False, **options: Any) -> AsyncIterator[Desk]:
    settings = Settings(store=f"sqlite:{folder / 'journal.db'}")
    async with App(settings, **{"plugins": Plugins(PLUGINS), "scope": None, **options}) as app:
        yield Desk(app, look_only)
