"""A real model in this process: llama.cpp, with the carried model or any GGUF file. No key, no network.

- One instance per model file and process, loaded when it is first needed, in its own thread;
  calls wait for one another there, the event loop never does.
- A prompt with a schema is answered with one compact JSON object that satisfies it, always.
- The same calls in the same order give the same words: fixed seed, low temperature.
- A cancelled call stops at its next token, and the next call waits until it has.
"""

import asyncio
import os
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ripstop.engine.live import Live, Token
from ripstop.engine.performers import PromptTooLong, Refused, Request, ToolSpecs, Unavailable, no_tools
from ripstop.kernel.advice import Advice, NextStep
from ripstop.kernel.effects import AgentReplied, AskAgent
from ripstop.kernel.errors import DefinitionError

from .chat_format import messages_of, tools_of
from .chat_reply import Reply
from .json_grammar import BYTES_A_CHARACTER, grammar
from .model_files import carried_model, model_path, unusable
from .windows import LOCAL_WINDOW

CONTEXT = LOCAL_WINDOW
"""Tokens that prompt and reply may have together."""
TEXT_TOKENS = 1024
JSON_TOKENS = 512
"""What a reply may have at most: in free words, and as JSON."""
SAMPLING = {"temperature": 0.2, "seed": 20, "repeat_penalty": 1.1}
SILENT = -1
"""llama.cpp's log level below all others: the terminal belongs to us."""

Chunk = dict[str, Any]


class LocalAgent:
    def __init__(
        self, model_path: str | Path | None = None, live: Live | None = None, tools: ToolSpecs = no_tools
    ) -> None:
        self._path = Path(model_path) if model_path else None
        self._live = live
        self._tools = tools

    async def perform(self, request: Request) -> AgentReplied:
        assert isinstance(request.command, AskAgent), request
        assert request.prompt is not None, request
        model = _model(self._path)
        allowed = min(request.command.max_tokens or CONTEXT, CONTEXT)
        if request.prompt.schema is not None:
            return await self._as_json(model, request, request.prompt.schema, allowed)
        body: dict[str, Any] = {"max_tokens": min(allowed, TEXT_TOKENS)}
        if request.prompt.tools:
            body["tools"] = tools_of(self._tools(request.prompt.tools))
        return (await self._call(model, request, body)).answer()

    async def close(self) -> None:
        """The model stays: others in this process may use it, and it goes with the process."""

    async def _as_json(self, model: "_Model", request: Request, schema: dict[str, Any], allowed: int) -> AgentReplied:
        """First with room for ordinary text; if that was not enough, with room for any text at all."""
        room = min(allowed, JSON_TOKENS)
        spent = 0
        if allowed >= 2 * JSON_TOKENS:
            reply = await self._call(model, request, _held_to(schema, room, 1))
            if reply.finish == "stop":
                return reply.answer()
            spent = reply.usage.output_tokens
            room = min(room, CONTEXT - reply.usage.input_tokens)
        reply = await self._call(model, request, _held_to(schema, room, BYTES_A_CHARACTER))
        if reply.finish != "stop":
            raise _too_long(reply.usage.input_tokens)
        usage = replace(reply.usage, output_tokens=reply.usage.output_tokens + spent)
        return replace(reply.answer(), usage=usage)

    async def _call(self, model: "_Model", request: Request, body: dict[str, Any]) -> Reply:
        assert request.prompt is not None
        reply = Reply()
        loop = asyncio.get_running_loop()
        live = self._live if self._live and self._live.watched else None

        def take(chunk: Chunk) -> None:
            before = reply.received
            new = reply.add(chunk)
            request.progress.receive(reply.received - before)
            request.progress.report(reply.usage)
            if new and live:
                loop.call_soon_threadsafe(live.show, Token(request.run_id, request.number, new, request.attempt))

        request.progress.left()
        await model.chat({"messages": messages_of(request.prompt), **body}, take)
        return reply


def _held_to(schema: dict[str, Any], room: int, bytes_a_character: int) -> dict[str, Any]:
    try:
        # one token more, for the end of the reply
        return {"grammar": grammar(schema, room - 1, bytes_a_character), "max_tokens": room}
    except DefinitionError as error:
        raise Refused(str(error), fault="definition") from error


# The models of this process

_models: dict[Path, "_Model"] = {}
INSTALL = NextStep("install_model", "Install it", "Run `{}`")


def _model(path: Path | None) -> "_Model":
    """The one instance of a model file. Called in the event loop only, so two calls never race."""
    found = path or carried_model()
    if found is None:
        raise Unavailable(
            Advice("The local model is not installed. ", INSTALL, ", or name a model file: `--model local:FILE.gguf`."),
            fault="definition",
        )
    found = model_path(str(found))
    model = _models.get(found)
    if model is None:
        if problem := unusable(found):
            raise Unavailable(problem, fault="definition")
        model = _models[found] = _Model(found)
    return model


class _Model:
    """A model file, its llama.cpp instance, and the one thread that may touch it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ripstop-local-model")
        self._server: Any = None

    async def chat(self, body: dict[str, Any], take: Callable[[Chunk], None]) -> None:
        """Have a chat request answered; `take` gets the chunks, in the model's thread."""
        stopped = threading.Event()
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._answer, body, take, stopped)
        finally:
            stopped.set()

    def _answer(self, body: dict[str, Any], take: Callable[[Chunk], None], stopped: threading.Event) -> None:
        if stopped.is_set():
            return
        server = self._load()
        trouble: list[Exception] = []

        def on_chunk(chunk: Chunk) -> bool:
            """True stops the model. An exception would be lost in llama.cpp, so it is carried past it."""
            if stopped.is_set():
                return True
            try:
                if "error" in chunk:
                    raise _refusal(chunk["error"])
                take(chunk)
            except Exception as error:  # noqa: BLE001  # raised again below, in our own frames
                trouble.append(error)
                return True
            return False

        options = {**SAMPLING, "stream": True, "stream_options": {"include_usage": True}}
        server.handle_chat_completions({**options, **body}, on_chunk)
        if trouble:
            raise trouble[0]

    def _load(self) -> Any:
        if self._server is None:
            try:
                import xllamacpp
            except ImportError as error:
                raise Unavailable(
                    Advice(f"The local model needs llama.cpp ({error}). ", INSTALL, "."),
                    fault="definition",
                ) from error
            params = xllamacpp.CommonParams()
            params.model.path = str(self._path)
            params.n_ctx = CONTEXT
            params.verbosity = SILENT
            params.warmup = False
            params.ui = False
            # one core is left to others: with all of them, replies were very slow at times on a busy machine
            params.cpuparams.n_threads = params.cpuparams_batch.n_threads = max(1, (os.cpu_count() or 2) - 1)
            # llama.cpp also listens on a loopback port; with a secret key it answers no other program there
            params.api_keys = [secrets.token_hex(32)]
            try:
                self._server = xllamacpp.Server(params)
            except RuntimeError as error:
                raise Unavailable(f"llama.cpp cannot load {str(self._path)!r}: {error}.", fault="definition") from error
        return self._server


def _refusal(error: dict[str, Any]) -> Refused:
    if error.get("type") == "exceed_context_size_error":
        return _too_long(error.get("n_prompt_tokens", 0))
    return Refused(f"llama.cpp refused the request: {error.get('message', error)}", fault="ours")


def _too_long(tokens: int) -> PromptTooLong:
    return PromptTooLong(
        f"The prompt has {tokens} tokens, and prompt and reply together may have {CONTEXT} with the local model. "
        "Shorten the prompt, or give this agent another model."
    )
