"""One call of a server's tool: what the server wants to know is asked of a person, and then it is called again.

- A server of 2026 answers that it needs input. The command parks: no process and no connection waits for the person.
  Performed again, it goes on with the state that the server gave, or, after a restart, from the beginning: the same
  question has its answer then.
- A server of 2025 asks in the middle of the call. That waits in memory, and its time limit does not run meanwhile.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import suppress
from typing import Any

from mcp import MCPError, UrlElicitationRequiredError
from mcp.types import (
    CONNECTION_CLOSED,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    PARSE_ERROR,
    URL_ELICITATION_REQUIRED,
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitRequestURLParams,
    ElicitResult,
    EmbeddedResource,
    ImageContent,
    InputRequest,
    InputRequiredResult,
    InputResponses,
    ListRootsRequest,
    ListRootsResult,
    ResourceLink,
    Root,
    TextContent,
    TextResourceContents,
)
from pydantic import FileUrl, ValidationError

from ripstop.engine.performers import InDoubt, Kind, Refused, Request, TryAgain
from ripstop.kernel.effects import Answer, AskPerson, Failed, PersonAnswered, ToolReturned
from ripstop.kernel.text_limits import plain
from ripstop.security.files import make_folder

from ..toolbox import workspace_of
from .card import ToolCard, clean
from .connection import Connection, ConnectionOver
from .forms import ACCEPT, CannotAsk, elicit_content, form_question, key_of, url_question
from .schema_check import schema_problem, wrong_arguments
from .servers import ServerSpec

# What a server's answer to a call means for the run.
#
# | answer | for the run |
# |---|---|
# | a result | its text; without text its structured content; other things as a note with type and size |
# | a result with `isError` | failed, and the agent's to mend |
# | -32602 invalid arguments | failed, and the agent's to mend |
# | -32601, -32600, -32700, -32021 | failed: the server did not take the call |
# | closed, timed out, any other error, the wrong shape | tried again if the tool is pure, otherwise in doubt |


LONGEST_RESULT = 200_000
"""Characters."""
LONGEST_ERROR = 2_000
_NOT_TAKEN = (METHOD_NOT_FOUND, INVALID_REQUEST, PARSE_ERROR, MISSING_REQUIRED_CLIENT_CAPABILITY)


def read_result(card: ToolCard, result: CallToolResult) -> Answer:
    text = "\n".join(_texts(result.content))
    if result.is_error:
        return Failed(
            reason=f"{card.name}: {clean(text, LONGEST_ERROR) or 'it failed, and did not say why'}", fault="agent"
        )
    if not text and result.structured_content is not None:
        value: Any = plain(result.structured_content)
        if len(str(value)) <= LONGEST_RESULT:
            return ToolReturned(value=value)
        text = str(value)
    if len(text) > LONGEST_RESULT:
        text = f"{text[:LONGEST_RESULT]}\n[cut: it has {len(text):,} characters]"
    return ToolReturned(value=text)


def read_error(card: ToolCard, error: MCPError) -> Exception | None:
    """The exception that says that the server did not do it; `None` if it may have."""
    said = f"{card.name}: {clean(error.message, LONGEST_ERROR)}"
    if error.code == INVALID_PARAMS:
        return Refused(said, "agent")
    return Refused(said, "tool") if error.code in _NOT_TAKEN else None


def broken_off(kind: Kind, reason: str) -> Exception:
    """A call that may have taken effect. A pure one can simply be made again; of a keyed one the worker knows how."""
    return TryAgain(reason) if kind is Kind.PURE else InDoubt(reason)


def _texts(content: Iterable[Any]) -> Iterable[str]:
    for block in content:
        match block:
            case TextContent(text=text):
                yield text
            case EmbeddedResource(resource=TextResourceContents(text=text)):
                yield text
            case EmbeddedResource(resource=BlobResourceContents(blob=blob, mime_type=kind)):
                yield _note(kind, blob)
            case ImageContent(data=data, mime_type=kind) | AudioContent(data=data, mime_type=kind):
                yield _note(kind, data)
            case ResourceLink(uri=uri, name=name):
                yield f"[a link to {clean(name, 200)}: {clean(str(uri), 500)}]"


def _note(kind: str | None, data: str) -> str:
    return f"[{clean(kind or 'unknown type', 100)}, {len(data) * 3 // 4:,} bytes, not shown]"


MOST_ROUNDS = 10
"""Times that a call is made again because the server needs something."""
MOST_CONNECTIONS = 3
"""That end while a call waits for its turn."""
MOST_QUESTIONS = 20
"""Of one call."""
MOST_TRIES = 5
"""Times that a person is asked again, because the answer is not what the server's form takes."""
STILL_WORKING = 0.25
"""Seconds before a server that only gave a state is called again."""
POLL_INTERVALS = (0.1, 2.0)
"""Seconds between two looks for an answer, at first and at most."""

Waiting = MutableMapping[str, InputRequiredResult]
"""What servers need for calls that are parked, by the key of the call."""


class _Again(Exception):
    """Raised if the state that a server gave is not valid any more: its process was started again, or it is too old."""


class _Parked(Exception):
    """Raised if a person has to answer before the call can be made again."""


class ServerCall:
    def __init__(
        self,
        request: Request,
        server: ServerSpec,
        card: ToolCard,
        waiting: Waiting,
    ) -> None:
        self._request = request
        self._server = server
        self._card = card
        self._waiting = waiting
        self._asked: Counter[str] = Counter()
        self._limit: asyncio.Timeout | None = None
        self._asking = 0

    @property
    def _kind(self) -> Kind:
        return self._server.kind(self._card)

    async def make(self, connect: Callable[[], Awaitable[Connection]]) -> Answer | None:
        """`None`: a person has to answer first."""
        needs = self._waiting.get(self._request.key)
        given = await self._inputs(needs) if needs else {}
        if given is None:
            return None
        for _ in range(MOST_CONNECTIONS):
            connection = await connect()
            try:
                async with connection.calling(self):
                    return await self._rounds(connection, needs, given)
            except ConnectionOver:
                continue
            except _Parked:
                return None
        raise TryAgain(f"The MCP server {self._server.name!r} ends its connections.")

    async def _rounds(
        self, connection: Connection, needs: InputRequiredResult | None, given: InputResponses
    ) -> Answer | None:
        """Call until there is a result. Raises `_Parked`."""
        for number in range(MOST_ROUNDS):
            result = None
            try:
                result = await self._leg(connection, given or None, needs.request_state if needs else None)
            except _Again:
                if number:
                    raise Refused(f"{self._card.name}: the server does not accept its own state.") from None
                needs, given = None, {}
                self._asked.clear()
            if isinstance(result, CallToolResult):
                return read_result(self._card, result)
            if isinstance(result, InputRequiredResult):
                self._waiting[self._request.key] = needs = result
                answered = await self._inputs(needs)
                if answered is None:
                    raise _Parked
                given = answered
        raise Refused(f"{self._card.name}: the server asked for input more than {MOST_ROUNDS} times.")

    async def _leg(
        self, connection: Connection, given: InputResponses | None, state: str | None
    ) -> CallToolResult | InputRequiredResult | None:
        """Call once. `None`: call again, a person has opened an address."""
        try:
            async with asyncio.timeout(self._server.timeout) as self._limit:
                return await connection.call(self._card.tool, self._request.arguments, self._request.key, given, state)
        except TimeoutError:
            connection.use_no_more()
            said = f"{self._card.name} did not answer within {self._server.timeout:g} s"
            raise broken_off(self._kind, said) from None
        except ValidationError:
            raise broken_off(self._kind, f"{self._card.name}: the server's answer has the wrong shape") from None
        except MCPError as error:
            if error.code == INVALID_PARAMS and state is not None:
                raise _Again from error
            if error.code == URL_ELICITATION_REQUIRED:
                await self._have_opened(error)
                return None
            raise await self._broken(connection, error) from error
        finally:
            self._limit = None

    async def _broken(self, connection: Connection, error: MCPError) -> Exception:
        refusal = read_error(self._card, error)
        if refusal is not None:
            return refusal
        reason = str(error)
        if error.code == CONNECTION_CLOSED:
            await connection.close()
            reason = connection.reason
        return broken_off(self._kind, f"{self._card.name}: {reason}")

    # What the server needs before it goes on

    async def _inputs(self, needs: InputRequiredResult) -> InputResponses | None:
        """What it needs; `None` if a person has not answered yet."""
        wanted = needs.input_requests or {}
        if not wanted:
            await asyncio.sleep(STILL_WORKING)
        if len(wanted) > MOST_QUESTIONS:
            raise Refused(f"{self._card.name}: the server asks {len(wanted)} things at once.")
        given: InputResponses = {}
        for name, one in wanted.items():
            answer = await self._input(one)
            if answer is None:
                return None
            given[name] = answer
        return given

    async def _input(self, wanted: InputRequest) -> ElicitResult | ListRootsResult | None:
        if isinstance(wanted, ListRootsRequest):
            return self.roots()
        if not isinstance(wanted, ElicitRequest):
            raise Refused(f"{self._card.name}: the server wants to use a model of ours, which it is not allowed.")
        try:
            return await self._answered(wanted.params, self._request.ask)
        except CannotAsk as error:
            raise Refused(f"{self._card.name}: the server asks for something that cannot be asked: {error}.") from error

    async def _have_opened(self, error: MCPError) -> None:
        """An older server wants a person to open addresses before it does anything."""
        try:
            wanted = UrlElicitationRequiredError.from_error(error.error).elicitations[:MOST_QUESTIONS]
        except (ValueError, TypeError, AttributeError):
            wanted = []
        if not wanted:
            raise Refused(f"{self._card.name}: the server wants something opened, and does not say what.") from error
        requests: dict[str, InputRequest] = {str(at): ElicitRequest(params=one) for at, one in enumerate(wanted)}
        given = await self._inputs(InputRequiredResult(input_requests=requests))
        if given is None:
            raise _Parked
        if any(isinstance(one, ElicitResult) and one.action != ACCEPT for one in given.values()):
            raise Refused(f"{self._card.name}: the person did not open the address.", "person")

    # In the middle of a call

    async def elicit(self, params: ElicitRequestParams) -> ElicitResult:
        if self._asked.total() >= MOST_QUESTIONS:
            return ElicitResult(action="cancel")
        self._asking += 1
        self._set_limit(None)
        try:
            answer = await self._answered(params, self._wait_for)
        except (CannotAsk, Refused):
            answer = None
        finally:
            self._asking -= 1
            if not self._asking:
                self._set_limit(self._server.timeout)
        return answer or ElicitResult(action="cancel")

    def roots(self) -> ListRootsResult:
        """The run's workspace, and nothing else."""
        folder = workspace_of(self._request)
        make_folder(folder)
        return ListRootsResult(roots=[Root(uri=FileUrl(folder.absolute().as_uri()), name="workspace")])

    def _set_limit(self, seconds: float | None) -> None:
        if self._limit is not None:
            with suppress(RuntimeError):  # the call has ended meanwhile
                self._limit.reschedule(None if seconds is None else asyncio.get_running_loop().time() + seconds)

    async def _wait_for(self, key: str, question: AskPerson) -> PersonAnswered | None:
        """The answer, as soon as there is one; `None` if the call has ended before."""
        pause, longest = POLL_INTERVALS
        while self._limit is not None:
            answer = await self._request.ask(key, question)
            if answer is not None:
                return answer
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, longest)
        return None

    # Both

    async def _answered(
        self,
        params: ElicitRequestParams,
        ask: Callable[[str, AskPerson], Awaitable[PersonAnswered | None]],
    ) -> ElicitResult | None:
        """What a person says; `None` if that is not known yet. Raises `CannotAsk`."""
        schema, problem = _schema_of(params), ""
        for _ in range(MOST_TRIES):
            question = self._question(params, schema, problem)
            name = key_of(question, 0)
            answer = await ask(key_of(question, self._asked[name]), question)
            if answer is None:
                return None
            self._asked[name] += 1
            content = elicit_content(answer)
            if content is None:
                return ElicitResult(action="decline")
            problem = wrong_arguments(schema, content)
            if not problem:
                return ElicitResult(action="accept", content=None if _is_url(params) else content)
        return ElicitResult(action="cancel")

    def _question(self, params: ElicitRequestParams, schema: Mapping[str, object], problem: str) -> AskPerson:
        if isinstance(params, ElicitRequestURLParams):
            return url_question(self._card, params.message, params.url)
        return form_question(self._card, params.message, schema, problem)


def _is_url(params: ElicitRequestParams) -> bool:
    return isinstance(params, ElicitRequestURLParams)


def _schema_of(params: ElicitRequestParams) -> Mapping[str, object]:
    schema = params.requested_schema if isinstance(params, ElicitRequestFormParams) else {}
    if problem := schema_problem(schema):
        raise CannotAsk(problem)
    return schema
