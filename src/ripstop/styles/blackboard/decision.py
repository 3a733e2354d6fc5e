"""MAIN's decision: strict JSON, or with `main_json: last` the last object in its words.

What it names has to exist; what is wrong with it is said at once. Keys that are not known are kept and shown.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from ripstop.kernel.text_limits import DEEPEST, is_plain, shown

from .. import reply
from ..checks import Shown
from .definition import FINISH, USER, Board

NEXT, NOT_JSON = "next_agent", "MAIN 输出非 JSON"
MAX_OPTIONS = 20
MAX_TEXT = 200_000
"""Characters of one text in a decision."""
TEXTS = ("reason", "dev_plan", "dev_plan_next", "history_append", "question", "decision_title")
_IDS = ("id", "option_id", "key")
_WORDS = ("label", "title", "text", "description", "value")
_NAMED = re.compile(r"([A-Za-z]{0,10}\d{1,3}|[A-Za-z])(?:[:：]\s*|\)\s+)(\S.*)", re.DOTALL)
"""An option such as `opt2: Take the train.`, `a: …` or `b) …`."""
EXPECTED = ("dev_plan", "finish_review_override")
"""Keys that count as null if they are missing, which is warned about."""
KNOWN = (NEXT, *TEXTS, "task", "options", "finish_review_override")


class WrongDecision(Exception):
    """What MAIN said cannot be carried out; says why."""

    is_told = False
    """Whether MAIN is told, and asked again, whatever the policy says about retries."""

    def __init__(self, why: str, found: tuple[Shown, ...] = ()) -> None:
        """`found`: what the gates wanted, and what they found, if it came to them."""
        super().__init__(why)
        self.found = found


class HeldBack(WrongDecision):
    """Gates do not let the decision pass, and the policy says that MAIN is told."""

    is_told = True


class Decision(Struct, frozen=True):
    next_agent: str
    """An agent as its board calls it, `FINISH` or `USER`."""
    reason: str
    task: str = ""
    dev_plan: str = ""
    dev_plan_next: str = ""
    history_append: str = ""
    question: str = ""
    title: str = ""
    options: dict[str, str] = {}
    """What a person can choose, each with its label; empty: it needs none."""
    override: str = ""
    others: dict[str, Any] = {}
    missing: tuple[str, ...] = ()
    """Keys of `EXPECTED` that it does not have."""

    @property
    def assignment(self) -> str:
        """What the agent is to do; MAIN need not say it twice."""
        return self.task or self.reason

    @property
    def overrides(self) -> bool:
        return self.override not in ("", "false")


def check_form(text: str, board: Board) -> None:
    """Raise `WrongDecision` for words that are only almost JSON, where the policy wants JSON.

    Apart from `read_decision`, which also reads decisions that an older version has accepted.
    """
    if board.policy.main_json == "strict" and (why := reply.why_not_json(text.removeprefix("\ufeff"))):
        raise WrongDecision(f"{NOT_JSON} (MAIN's reply is not JSON: {why})")


def read_decision(text: str, board: Board) -> Decision:
    """Raises `WrongDecision`."""
    said = _object(text, board.policy.main_json)
    if NEXT not in said:
        raise WrongDecision(f"the decision has no {NEXT!r}; it has: {_names(said)}")
    agent = _agent(said[NEXT], board)
    texts = {name: _text(said, name) for name in TEXTS}
    override = said.get("finish_review_override")
    if not texts["reason"].strip():
        if override is not None:
            raise WrongDecision("'finish_review_override' needs a 'reason'")
        raise WrongDecision("the decision has no 'reason'")
    if override is not None and agent != FINISH:
        raise WrongDecision(f"'finish_review_override' is only for {FINISH}, and 'next_agent' is {agent!r}")
    return Decision(
        next_agent=agent,
        reason=texts["reason"],
        task=_any_text(said.get("task")),
        dev_plan=texts["dev_plan"],
        dev_plan_next=texts["dev_plan_next"],
        history_append=texts["history_append"],
        question=texts["question"],
        title=texts["decision_title"],
        options=_options(said.get("options")),
        override=_any_text(override),
        others={name: value for name, value in said.items() if name not in KNOWN},
        missing=tuple(name for name in EXPECTED if name not in said),
    )


def legal_names(board: Board) -> list[str]:
    return [*(agent.name for agent in board.agents), FINISH, USER]


def _object(text: str, mode: str) -> Mapping[str, Any]:
    try:
        said = reply.last(text, NEXT)[0] if mode == "last" else reply.strict(text.removeprefix("\ufeff"))
    except reply.NoReply as error:
        raise WrongDecision(f"{NOT_JSON} (MAIN's reply is not JSON: {error})") from error
    if not is_plain(said):
        raise WrongDecision(f"{NOT_JSON} (MAIN's reply is nested more than {DEEPEST} levels deep)")
    return said


def _agent(named: object, board: Board) -> str:
    legal = legal_names(board)
    if isinstance(named, str):
        wanted = named.strip().casefold()
        for name in legal:
            if name.casefold() == wanted:
                return name
    raise WrongDecision(f"{NEXT} is {shown(named)}, which is not one of: {', '.join(legal)}")


def _text(said: Mapping[str, Any], name: str) -> str:
    value = said.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise WrongDecision(f"{name!r} must be a text, not {shown(value)}")
    if len(value) > MAX_TEXT:
        raise WrongDecision(f"{name!r} has {len(value):,} characters; at most {MAX_TEXT:,} are allowed")
    return value


def _any_text(value: Any) -> str:
    """A text as it is; anything else as JSON, because real decisions have tasks with fields."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if len(text) > MAX_TEXT:
        raise WrongDecision(f"a text of the decision has {len(text):,} characters; at most {MAX_TEXT:,} are allowed")
    return text


def _options(value: Any) -> dict[str, str]:
    """What a person can choose from. An option is a text, or an object with an id and its words."""
    if value is None:
        return {}
    if not isinstance(value, list):
        raise WrongDecision(f"'options' must be a list, not {shown(value)}")
    if len(value) > MAX_OPTIONS:
        raise WrongDecision(f"'options' has {len(value)} entries; at most {MAX_OPTIONS} are allowed")
    found: dict[str, str] = {}
    for one in value:
        choice, label = _option(one)
        if found.get(choice, label) != label:
            raise WrongDecision(f"'options' has {shown(choice)} twice, with different words")
        found[choice] = label
    return found


def _option(one: Any) -> tuple[str, str]:
    """The choice and its label; empty if the choice says it all. A text may be `id: words`."""
    if isinstance(one, dict):
        words = ": ".join(_any_text(one[key]).strip() for key in _WORDS if one.get(key))
        choice = next((_any_text(one[key]).strip() for key in _IDS if one.get(key)), "")
        choice, label = (choice, words) if choice else (words or _any_text(one), "")
    else:
        text = _any_text(one).strip()
        named = _NAMED.match(text)
        choice, label = (named[1], named[2]) if named else (text, "")
    if not choice:
        raise WrongDecision("'options' has an empty entry")
    return choice, label


def _names(said: Mapping[str, Any]) -> str:
    return ", ".join(shown(name) for name in list(said)[:8]) or "nothing"
