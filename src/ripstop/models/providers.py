"""The long tail of providers, through pydantic-ai: `<provider>:NAME`.

pydantic-ai is used for one thing, a single model request; turns, tools and retries are ours. While somebody
watches, the reply is streamed, if the model can. Keys come from the environment variables that each provider's
library reads.
"""

import asyncio
import os
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from ripstop.engine.live import Live, Token
from ripstop.engine.performers import (
    PromptTooLong,
    Refused,
    Request,
    ToolSpecs,
    TryAgain,
    Unavailable,
    no_tools,
    start_thread,
    with_floor,
)
from ripstop.kernel.effects import AgentReplied, AskAgent
from ripstop.kernel.prompt import Message, Prompt
from ripstop.security.redaction import redacted, secrets_in

from .accounts import says_no_quota, says_wrong_key
from .chat_reply import CALL_SECONDS, Reply
from .passing_errors import says_busy
from .provider_models import model_of
from .windows import says_too_long

if TYPE_CHECKING:
    from pydantic_ai.messages import (
        ModelMessage,
        ModelRequestPart,
        ModelResponse,
        ModelResponsePart,
        ModelResponseStreamEvent,
    )
    from pydantic_ai.models import Model, ModelRequestParameters


PASSING = (408, 409, 425)


class ProviderAgent:
    def __init__(
        self,
        spec: "str | Model[Any]",
        live: Live | None = None,
        *,
        tools: ToolSpecs = no_tools,
        timeout: float = CALL_SECONDS,
    ) -> None:
        self._spec = spec
        self._live = live
        self._tools = tools
        self._timeout = timeout
        self._loading: asyncio.Future[Model[Any]] | None = None

    async def perform(self, request: Request) -> AgentReplied:
        try:
            return await self._perform(request)
        except (TryAgain, Refused) as error:
            # a server has seen the key, and a library can quote it
            error.args = (redacted(str(error), *secrets_in(os.environ)),)
            raise

    async def _perform(self, request: Request) -> AgentReplied:
        assert isinstance(request.command, AskAgent), request
        assert request.prompt is not None, request
        model = await self._load()
        import httpx2
        from pydantic_ai.exceptions import ModelAPIError, UnexpectedModelBehavior, UserError

        try:
            async with asyncio.timeout(self._timeout):
                response = await self._respond(model, request, request.prompt, request.command)
        except TimeoutError:
            raise TryAgain(f"{self._name} did not finish its reply in {self._timeout:g} s.") from None
        except ModelAPIError as error:
            raise _trouble(error) from error
        except httpx2.TransportError as error:  # in the middle of a stream, which not all of them look after
            raise TryAgain(f"The connection to {self._name} broke ({type(error).__name__}: {error}).") from error
        except UnexpectedModelBehavior as error:
            raise TryAgain(f"{self._name} sent a reply that cannot be read: {error}") from error
        except UserError as error:
            raise Unavailable(f"{self._name} cannot be asked: {error}", fault="definition") from error
        return _answer(response, request, request.prompt)

    async def _respond(
        self, model: "Model[Any]", request: Request, prompt: Prompt, command: AskAgent
    ) -> "ModelResponse":
        from pydantic_ai.direct import model_request, model_request_stream
        from pydantic_ai.settings import ModelSettings

        settings = ModelSettings()
        if "max_retries" not in model.unsupported_settings:
            settings["max_retries"] = 0  # attempts are ours, so that limits and rate limits count each
        if command.max_tokens is not None:
            settings["max_tokens"] = command.max_tokens
        messages, parameters = _messages(prompt), self._parameters(model, prompt)
        request.progress.left()
        if self._live and self._live.watched:
            try:
                async with model_request_stream(
                    model, messages, model_settings=settings, model_request_parameters=parameters
                ) as stream:
                    async for event in stream:
                        request.progress.receive(_received(event))
                        if words := _words(event):
                            self._live.show(Token(request.run_id, request.number, words, request.attempt))
                return stream.get()
            except NotImplementedError:  # raised before anything is sent: this model cannot stream
                pass
        response = await model_request(model, messages, model_settings=settings, model_request_parameters=parameters)
        request.progress.receive(sum(map(_size, response.parts)))
        return response

    async def close(self) -> None:
        """pydantic-ai shares its HTTP clients within the process and closes them itself."""

    @property
    def _name(self) -> str:
        return self._spec if isinstance(self._spec, str) else self._spec.model_name

    async def _load(self) -> "Model[Any]":
        """The model, made once. A provider's library can take many seconds to import."""
        if self._loading is None or (self._loading.done() and self._loading.exception()):
            self._loading = start_thread(_made, spec=self._spec)
        return await asyncio.shield(self._loading)

    def _parameters(self, model: "Model[Any]", prompt: Prompt) -> "ModelRequestParameters":
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.output import OutputObjectDefinition
        from pydantic_ai.tools import ToolDefinition

        if prompt.tools:
            tools = [
                ToolDefinition(name=spec.name, description=spec.description, parameters_json_schema=spec.parameters)
                for spec in self._tools(prompt.tools)
            ]
            return ModelRequestParameters(function_tools=tools)
        if prompt.schema is not None and model.profile.get("supports_json_schema_output"):
            form = OutputObjectDefinition(json_schema=prompt.schema, name="reply")
            return ModelRequestParameters(output_mode="native", output_object=form)
        return ModelRequestParameters()


def _made(spec: "str | Model[Any]") -> "Model[Any]":
    """Also imports all that a request needs."""
    model = model_of(spec) if isinstance(spec, str) else spec
    import httpx2  # noqa: F401
    import pydantic_ai.direct  # noqa: F401

    return model


def _messages(prompt: Prompt) -> "list[ModelMessage]":
    """pydantic-ai's history: what we say and what the model says take turns, so neighbours are joined."""
    from pydantic_ai.messages import ModelRequest, ModelResponse

    tool_of = {call.id: call.tool for message in prompt.messages for call in message.calls}
    history: list[ModelMessage] = []
    for message in prompt.messages:
        if message.role == "assistant":
            history.append(ModelResponse(parts=_response_parts(message)))
            continue
        part = _request_part(message, tool_of)
        last = history[-1] if history else None
        if isinstance(last, ModelRequest):
            last.parts = [*last.parts, part]
        else:
            history.append(ModelRequest(parts=[part]))
    return history


def _request_part(message: Message, tool_of: dict[str, str]) -> "ModelRequestPart":
    from pydantic_ai.messages import SystemPromptPart, ToolReturnPart, UserPromptPart

    match message.role:
        case "system":
            return SystemPromptPart(content=message.text)
        case "tool":
            tool = tool_of.get(message.call_id, "")
            return ToolReturnPart(tool_name=tool, content=message.text, tool_call_id=message.call_id)
    return UserPromptPart(content=message.text)


def _response_parts(message: Message) -> "list[ModelResponsePart]":
    from pydantic_ai.messages import TextPart, ToolCallPart

    calls = [ToolCallPart(tool_name=c.tool, args=dict(c.arguments), tool_call_id=c.id) for c in message.calls]
    return [TextPart(content=message.text), *calls] if message.text or not calls else [*calls]


def _words(event: "ModelResponseStreamEvent") -> str:
    """What an event adds to the text of the reply; thoughts and tool calls add nothing."""
    from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

    match event:
        case PartStartEvent(part=TextPart(content=words)) | PartDeltaEvent(delta=TextPartDelta(content_delta=words)):
            return words
    return ""


def _received(event: "ModelResponseStreamEvent") -> int:
    """Bytes that an event brings; the one at the end of a part repeats the part."""
    from pydantic_ai.messages import PartDeltaEvent, PartStartEvent

    match event:
        case PartStartEvent(part=part):
            return _size(part)
        case PartDeltaEvent(delta=delta):
            return _size(delta)
    return 0


def _size(part: object) -> int:
    """Bytes of text, thoughts or arguments in a part of a reply, or in what is new in one."""
    names = ("content", "args", "content_delta", "args_delta")
    said = next((said for name in names if (said := getattr(part, name, None))), "")
    return len(str(said).encode("utf-8", "replace"))


def _answer(response: "ModelResponse", request: Request, prompt: Prompt) -> AgentReplied:
    """Through the same border as every other server's reply, because the libraries pass on much as it came."""
    from pydantic_ai.messages import ToolCallPart

    calls = [
        {"index": index, "id": part.tool_call_id, "function": {"name": part.tool_name, "arguments": part.args}}
        for index, part in enumerate(part for part in response.parts if isinstance(part, ToolCallPart))
    ]
    usage = {"input_tokens": response.usage.input_tokens, "output_tokens": response.usage.output_tokens}
    reply = Reply()
    try:
        message = {"content": response.text, "tool_calls": calls}
        choice = {"message": message, "finish_reason": response.finish_reason}
        reply.add({"choices": [choice], "usage": usage, "model": response.model_name})
    finally:
        request.progress.report(reply.usage)
    answer = reply.answer()
    return replace(answer, usage=with_floor(answer.usage, len(msgspec.json.encode(prompt)), reply.received))


def _trouble(error: Any) -> TryAgain | Refused:
    """By status where there is one; without one it was the connection, which may be back next time."""
    status = getattr(error, "status_code", None)
    if status is not None and says_too_long(status, str(error)):
        return PromptTooLong(str(error))
    if status is not None and says_no_quota(status, str(error)):
        return Unavailable(f"{error}. The account has used up what it may spend.", fault="definition")
    said = f"{error}. Check the model's name and the provider's key in the environment."
    if status is not None and says_wrong_key(status, str(error)):
        return Unavailable(said, fault="definition")
    if status == 429:
        return TryAgain(str(error), after=error.retry_after, provider_wide=True)
    if status is None or status >= 500 or status in PASSING or says_busy(status, str(error)):
        return TryAgain(str(error), after=error.retry_after)
    if status in (401, 403, 404):
        return Unavailable(said, fault="definition")
    return Refused(said, fault="agent")
