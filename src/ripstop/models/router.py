"""The performer for `AskAgent`: finds the agent that a model's SPEC means, and signs what it says.

SPEC is the model set for all agents of the run (`--model` of `run` or `resume`), else the command's own `model`,
else the run's setting, else the default. Each agent is made once, when it is first needed. What every reply carries
(`sent`, `model`, its price, its window) is set here and nowhere else. An address is checked before an agent is made for
it.
"""

import difflib
import re
from collections.abc import Callable, Mapping
from typing import Protocol, get_args

from msgspec import Struct
from msgspec.structs import replace

from ripstop.engine.live import Live
from ripstop.engine.performers import Kind, Refused, Request, ToolSpecs, priced
from ripstop.kernel.effects import AgentReplied, Answer, AskAgent, Command
from ripstop.kernel.errors import DefinitionError, UsageError
from ripstop.kernel.prompt import seal

from .accounting import Prices, is_free
from .chat_reply import CALL_SECONDS
from .provider_models import extra_for
from .windows import window_of

# A model's SPEC: its forms, and what can be known to be wrong with one before anybody is asked.
#
# Only what is certain is called wrong: an invalid form, an unknown provider. Whether a model of that
# name exists is the provider's to say; whether its file, its script or its key is there depends on where and when it is
# used, so `app/start.py` checks that.


FORMS = (
    "`local`, `local:FILE.gguf`, `script:PATH`, `openai:NAME` (with a base URL for any compatible server), "
    "`<provider>:NAME`"
)
OURS = ("local", "script", "openai")
_SPEC = re.compile(r"([a-z][a-z0-9_./-]*)(?::([^\0]+))?")
_NAMED = {"script": "PATH"}
"""What comes after the colon, where it is not NAME."""


class Wrong(Struct, frozen=True):
    """What is wrong with a SPEC, and what would be right."""

    text: str
    hint: str
    everywhere: bool = True
    """False: only here, because something is not installed."""


_VERSION = re.compile(r"(?:[-:@._](?:[0-9][0-9._-]*|latest))?")


def is_other_model(asked: str, says: str) -> bool:
    """Whether a server says that another model replied than the one that was asked for.

    A version of the same one is not another: servers answer to `gpt-4o` as `gpt-4o-2024-08-06`.
    """
    wanted, said = (name.strip().lower().rpartition("/")[2].removesuffix(".gguf") for name in (asked, says))
    wanted = wanted.removesuffix("-latest").removesuffix(":latest")
    return bool(said) and not (said.startswith(wanted) and _VERSION.fullmatch(said, len(wanted)))


def parts(spec: str) -> tuple[str, str]:
    """What comes before the first colon and after it; both empty if it is not in the form of a SPEC."""
    found = _SPEC.fullmatch(spec)
    kind, name = (found[1], found[2] or "") if found else ("", "")
    return (kind, name) if kind == "local" or name.strip() else ("", "")


def wrong(spec: str) -> Wrong | None:
    kind = parts(spec)[0]
    if not kind:
        return Wrong(f"{spec!r} names no model" if spec.strip() else "no model is named", _near(spec, OURS))
    if kind in OURS:
        return None
    if "://" in spec:
        return Wrong(f"the name of a {kind} model is an address", "an address is set with --base-url, for openai:NAME")
    try:
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.providers import infer_provider_class
    except ImportError:
        hint = _near(spec, OURS) if _like(kind, OURS) else f"run `pip install '{extra_for(kind)}'`"
        return Wrong(f"{spec!r} needs pydantic-ai, which is not installed", hint, everywhere=False)
    try:
        infer_provider_class(kind)
    except (ValueError, UserError):
        return Wrong(f"there is no provider {kind!r} of models", _near(spec, (*OURS, *_providers())))
    except ImportError:
        hint = f"run `pip install '{extra_for(kind)}'`"
        return Wrong(f"{spec!r} needs the library of its provider, which is not installed", hint, everywhere=False)
    return None


def _near(spec: str, kinds: tuple[str, ...]) -> str:
    """A hint: the SPEC that was meant, or all there are."""
    before, _, after = spec.partition(":")
    kind = _like(before, kinds)
    if not kind:
        return f"it can be {FORMS}"
    name = after.strip() or ("" if kind == "local" else _NAMED.get(kind, "NAME"))
    meant = f"{kind}:{name}" if name else kind
    return f"did you mean {meant!r}?"


def _like(kind: str, kinds: tuple[str, ...]) -> str:
    return next(iter(difflib.get_close_matches(kind.strip().casefold()[:80], kinds, n=1)), "")


def _providers() -> list[str]:
    from pydantic_ai.models import KnownModelName

    names = [str(name) for name in get_args(KnownModelName.__value__)]
    return list(dict.fromkeys(name.partition(":")[0] for name in names if ":" in name))


ROLES = ("default", "strong")
"""Names that a definition may use instead of a model's SPEC."""


class AgentBackend(Protocol):
    async def perform(self, request: Request) -> AgentReplied: ...

    async def close(self) -> None: ...


class Agents:
    def __init__(
        self,
        live: Live,
        tools: ToolSpecs,
        default_model: str | None = None,
        base_url: str | None = None,
        prices: Prices | None = None,
        roles: Mapping[str, str] | None = None,
        timeout: float = CALL_SECONDS,
        check_address: Callable[[str], None] | None = None,
        key_origins: frozenset[str] | None = None,
        windows: Mapping[str, int] | None = None,
    ) -> None:
        """Args:
        roles: The SPEC for a role's name; a role that has none gets the run's model.
        check_address: Raises `UsageError` for an address that must not get anything. A run's own settings name one.
        key_origins: The origins that may get the key of `openai:`; `None` for whatever address is used.
        windows: Tokens that models can take, by SPEC or by provider.
        """
        self._live = live
        self._tools = tools
        self._default_model = default_model or ""
        self._base_url = base_url or ""
        self._prices = dict(prices or {})
        self._roles = dict(roles or {})
        self._timeout = timeout
        self._check_address = check_address
        self._key_origins = key_origins
        self._windows = dict(windows or {})
        self._agents: dict[tuple[str, str], AgentBackend] = {}

    async def perform(self, request: Request) -> AgentReplied:
        assert isinstance(request.command, AskAgent), request
        assert request.prompt is not None, request
        spec = self._spec(request)
        base_url = request.settings.base_url or self._base_url
        agent = self._agents.get((spec, base_url))
        if agent is None:
            agent = self._agents[spec, base_url] = self._make(spec, base_url)
        sent = sum(len(message.text.encode()) for message in request.prompt.messages)
        price = self._prices.get(spec)
        request.progress.begin(sent, price)
        if request.repeated and not is_free(spec):
            request.progress.repeat()
        reply = await agent.perform(request)
        usage = priced(reply.usage, price)
        if request.repeated:
            usage = usage.plus(request.progress.lost)
        window = window_of(spec, self._windows)
        says = reply.says if not is_free(spec) and is_other_model(parts(spec)[1], reply.says) else ""
        return replace(reply, sent=seal(request.prompt), model=spec, usage=usage, window=window, says=says)

    def _spec(self, request: Request) -> str:
        assert isinstance(request.command, AskAgent)
        named = request.command.model
        spec = self._roles.get(named, "") if named in ROLES else named
        return request.settings.model_for_all or spec or request.settings.model or self._default_model

    def kind(self, command: Command) -> Kind:
        return Kind.PURE

    def offers(self) -> tuple[str, ...]:
        return ()

    def provider(self, request: Request) -> str:
        return self._spec(request).partition(":")[0]

    async def probe(self, request: Request) -> Answer | None:
        return None

    async def close(self) -> None:
        for agent in self._agents.values():
            await agent.close()
        self._agents.clear()

    def _make(self, spec: str, base_url: str) -> AgentBackend:
        try:
            match parts(spec):
                case "local", name:
                    from .local import LocalAgent

                    return LocalAgent(name or None, self._live, self._tools)
                case "script", name:
                    from .scripted import ScriptedAgent, script_path

                    return ScriptedAgent(script_path(name), self._live)
                case "openai", name:
                    from .api_key import OPENAI
                    from .openai_compatible import OpenAICompatibleAgent

                    if self._check_address and base_url:
                        self._check_address(base_url)
                    return OpenAICompatibleAgent(
                        name,
                        base_url or OPENAI,
                        self._live,
                        tools=self._tools,
                        timeout=self._timeout,
                        key_origins=self._key_origins,
                    )
                case kind, _ if kind:
                    from .providers import ProviderAgent

                    return ProviderAgent(spec, self._live, tools=self._tools, timeout=self._timeout)
        except (DefinitionError, UsageError) as error:
            raise Refused(str(error), fault="definition") from error
        what = f"{spec!r} names no model" if spec else "No model is named"
        raise Refused(f"{what}. It can be {FORMS}; give it with `--model` or in the definition.", fault="definition")
