"""A session as a story: what the user says, what the model decides, what comes of it."""

import json
from typing import Any

import msgspec

from ripstop.kernel.effects import AgentReplied, Answer, AskAgent, RunFinished, Say, StartRun, Usage
from ripstop.kernel.events import Asked, Event, Heard, Redefined
from ripstop.styles.conversation.definition import Bot, BotFlow, BotTool, Endpoint, Skill, config_hash
from ripstop.styles.conversation.events import IterationDecided, StatusChanged
from ripstop.styles.conversation.plan import CachedPlan, read_plan
from ripstop.styles.conversation.style import ConversationStyle
from ripstop.testing import Given, given

CONFIG: dict[str, Any] = {"name": "Shop", "tone": "warm", "greeting": "Welcome!", "sop": "Help.", "mood": "sunny"}
TOOLS = (
    BotTool("order_status", "Where an order is.", {"type": "object"}),
    BotTool("refund", "Pay back.", endpoint=Endpoint("https://api.shop.example/refund", "POST", body={"id": "{id}"})),
    BotTool("lookup", "Look up.", endpoint=Endpoint("https://api.shop.example/{id}")),
    BotTool("add_tag", "Tag the customer.", endpoint=Endpoint("https://api.shop.example/tag", "POST"), system=True),
)
SKILLS = (
    Skill("order", "asks about an order", "Look it up.", ("order_status",)),
    Skill("advice", "asks for advice", "Recommend the blue one."),
    Skill("both", "asks for both", "Do both.", ("order_status", "refund")),
)
FLOWS = (
    BotFlow("sizes", "Finds the size.", "contains", ("which size",), workflow="size-adviser"),
    BotFlow("returns", "Returns things.", workflow="returns"),
    BotFlow("hours", "Opening hours.", "exact", ("hours?",), tool="opening_hours"),
)


def bot(**changes: Any) -> Bot:
    config = changes.pop("config", CONFIG)
    fields: dict[str, Any] = {"tools": TOOLS, "skills": SKILLS, "flows": FLOWS, "greeting": config.get("greeting", "")}
    return Bot("shop", config_hash(config), config, **{**fields, **changes})


def plan_of(one: Bot, **said: Any) -> CachedPlan:
    return read_plan({"name": "Shop", "tone": "warm", "sop": "1. Help.", "constraints": "Be brief.", **said}, one)


def decision(next_status: str, response: str | None = None, action: Any = None) -> dict[str, Any]:
    return {"reasoning": "so", "next_status": next_status, "action": action, "response": response}


def action(kind: str, target: str, **params: Any) -> dict[str, Any]:
    return {"type": kind, "target": target, "params": params}


class Story:
    def __init__(self, one: Bot | None = None, session: str = "s1", **plan: Any) -> None:
        self.bot = one or bot()
        self.plan = plan
        self.given: Given = given(ConversationStyle(), self.bot, arguments={"session": session})
        self.events: list[Event] = []
        self.calls = 0

    def tell(self, fact: Any, after: float = 1.0) -> "Story":
        self.events = self.given.tell(fact, after)
        self.calls += sum(isinstance(one, Asked) and isinstance(one.command, AskAgent) for one in self.events)
        return self

    def hear(self, text: str, id: str = "", channel: str = "", by: str = "") -> "Story":
        return self.tell(Heard(text=text, id=id, channel=channel, by=by))

    def planned(self, said: dict[str, Any] | None = None, asker: str | None = None, problem: str = "") -> "Story":
        """The planning run ends, with a decision about this session's message or about another one's."""
        number = self.given.opened(StartRun)
        mine = f"{self.given.run.state.chat.session}/{self.given.run.state.heard[-1]}"  # type: ignore[union-attr]
        result = {
            "plan": msgspec.to_builtins(plan_of(self.bot, **self.plan)),
            "decision": said,
            "problem": problem,
            "asker": asker if asker is not None else (mine if said or problem else "another/7"),
        }
        name = f"plan-{number}"
        self.given.contents.results[name] = result
        return self.tell(RunFinished(run="plan", outcome="completed", because="planned", result=name))

    def decides(self, next_status: str, response: str | None = None, action: Any = None) -> "Story":
        return self.says(json.dumps(decision(next_status, response, action)))

    def says(self, text: str) -> "Story":
        return self.tell(AgentReplied(text=text, usage=Usage(10, 5)))

    def answer(self, answer: Answer) -> "Story":
        return self.tell(answer)

    def redefine(self, one: Bot) -> "Story":
        self.bot = one
        self.given.contents.definitions["changed"] = one
        return self.tell(Redefined(definition="changed"))

    @property
    def state(self) -> Any:
        assert self.given.run is not None
        return self.given.run.state

    @property
    def said(self) -> list[str]:
        """What this step said to the user; `#N` for the words of a record."""
        says = [one.command for one in self.events if isinstance(one, Asked) and isinstance(one.command, Say)]
        return [one.text or f"#{one.about}" for one in says]

    @property
    def statuses(self) -> list[str]:
        return [one.status for one in self.events if isinstance(one, StatusChanged)]

    @property
    def asked(self) -> list[Any]:
        commands = [one.command for one in self.events if isinstance(one, Asked)]
        return [one for one in commands if not isinstance(one, Say)]

    @property
    def decided(self) -> list[IterationDecided]:
        return [one for one in self.events if isinstance(one, IterationDecided)]

    def prompt(self) -> str:
        """What the model is asked now."""
        run = self.given.run
        assert run is not None
        opened = run.open[self.given.opened(AskAgent)]
        prompt = self.given.style.render(opened.state, opened.command)  # type: ignore[arg-type]
        return "\n".join(message.text for message in prompt.messages)

    def ready(self) -> "Story":
        """A session whose first message was answered, so that its plan is known and its user greeted."""
        return self.hear("Hello").planned(decision("typing", "Hi."))
