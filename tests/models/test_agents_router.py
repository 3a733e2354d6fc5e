import asyncio
import json

import pytest
from msgspec.structs import replace

from ripstop.engine.live import Live
from ripstop.engine.performers import Kind, Refused, TryAgain, no_tools
from ripstop.kernel.effects import AskAgent, Usage
from ripstop.kernel.events import RunSettings
from ripstop.kernel.prompt import seal
from ripstop.models.router import Agents
from tests.models.asking import ask
from tests.models.test_openai_compatible_agent import response, server


def agents(**options):
    return Agents(Live(), no_tools, **options)


def perform(performer, request):
    async def play():
        try:
            return await performer.perform(request)
        finally:
            await performer.close()

    return asyncio.run(play())


@pytest.fixture
def script(tmp_path):
    def write(*lines, name="s.jsonl"):
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        return f"script:{tmp_path / name}"

    return write


def test_every_reply_is_signed_with_what_was_sent_and_by_whom(script):
    spec, request = script({"reply": "hi"}), ask()
    reply = perform(agents(default_model=spec), request)
    assert (reply.text, reply.sent, reply.model) == ("hi", seal(request.prompt), spec)


@pytest.mark.parametrize(
    ("asked", "said", "other"),
    [
        ("m", "another-model", True),
        ("gpt-4", "gpt-4o-mini", True),
        ("gpt-4o", "gpt-4o-2024-08-06", False),
        ("openai/gpt-4o", "gpt-4o", False),
        ("mistral-large-latest", "mistral-large-2411", False),
        ("qwen2.5", "qwen2.5:latest", False),
        ("m", "", False),
    ],
)
def test_a_reply_says_if_its_server_names_another_model(asked, said, other):
    async def play():
        body = {"model": said, "choices": [{"message": {"content": "hi"}, "finish_reason": "content_filter"}]}
        async with server(response(200, body)) as url:
            performer = agents(default_model=f"openai:{asked}", base_url=url)
            try:
                return await performer.perform(ask())
            finally:
                await performer.close()

    reply = asyncio.run(play())
    assert (reply.model, reply.says, reply.filtered) == (f"openai:{asked}", said if other else "", True)


def test_every_reply_says_how_much_its_model_can_take(script):
    spec = script({"reply": "hi"})
    assert perform(agents(default_model=spec), ask()).window == 0
    assert perform(agents(default_model=spec, windows={"script": 2000}), ask()).window == 2000


def test_only_a_reply_from_a_script_folder_is_marked_as_recorded(script, tmp_path):
    folder = tmp_path / "recording"
    (folder / "agent").mkdir(parents=True)
    (folder / "agent" / "01_reply.txt").write_text("hi")
    recorded = perform(agents(default_model=f"script:{folder}"), ask(agent="agent"))
    assert (recorded.text, recorded.recorded) == ("hi", True)
    assert not perform(agents(default_model=script({"reply": "hi"})), ask()).recorded


def test_the_command_goes_before_the_run_and_the_run_before_the_default(script):
    one, two, three = (script({"reply": name}, name=name) for name in ("one", "two", "three"))
    all_three = ask(model=one, settings=RunSettings(model=two))
    assert perform(agents(default_model=three), all_three).text == "one"
    assert perform(agents(default_model=three), ask(settings=RunSettings(model=two))).text == "two"
    assert perform(agents(default_model=three), ask()).text == "three"


def test_a_price_turns_tokens_into_money_unless_the_agent_did(script):
    spec = script(
        {"reply": "a", "usage": {"input_tokens": 1_000_000, "output_tokens": 500_000}},
        {"reply": "b", "usage": {"input_tokens": 1, "money": 9.0}},
    )

    async def play():
        performer = agents(default_model=spec, prices={spec: (2.0, 10.0)})
        return [(await performer.perform(ask(number=number))).usage for number in (2, 4)]

    usages = asyncio.run(play())
    assert usages[0] == Usage(input_tokens=1_000_000, output_tokens=500_000, money=7.0)
    assert usages[1].money == 9.0


@pytest.mark.parametrize("spec", ["", "nonsense", "script:", "openai", ":x", "Local"])
def test_an_unknown_model_is_refused_with_the_forms_there_are(spec):
    with pytest.raises(Refused, match="`script:PATH`") as refused:
        perform(agents(), ask(model=spec))
    assert refused.value.fault == "definition"


def test_a_bad_script_is_the_definitions_fault(tmp_path):
    with pytest.raises(Refused, match="No such file") as refused:
        perform(agents(), ask(model=f"script:{tmp_path}/none.jsonl"))
    assert refused.value.fault == "definition"


def test_a_base_url_of_the_run_reaches_the_agent():
    with pytest.raises(TryAgain, match=r"127\.0\.0\.1:9/v1"):
        perform(agents(), ask(model="openai:m", settings=RunSettings(base_url="http://127.0.0.1:9/v1")))
    with pytest.raises(TryAgain, match=r"127\.0\.0\.1:9/v2"):
        perform(agents(base_url="http://127.0.0.1:9/v2"), ask(model="openai:m"))


def test_the_local_model_answers_through_it(model_file):
    for spec in ("local", f"local:{model_file}"):
        assert perform(agents(), ask(model=spec, max_tokens=3)).usage.output_tokens == 3


def test_asking_an_agent_is_harmless_to_repeat_and_paced_by_provider():
    performer = agents(default_model="openai:m")
    assert performer.kind(AskAgent(agent="x")) is Kind.PURE
    assert performer.provider(ask()) == "openai"
    assert performer.provider(ask(settings=RunSettings(model="mistral:m"))) == "mistral"
    assert performer.provider(ask(model="local", settings=RunSettings(model="mistral:m"))) == "local"
    assert asyncio.run(performer.probe(ask())) is None


@pytest.mark.parametrize("repeated", [False, True])
def test_a_paid_call_that_is_repeated_after_a_crash_counts_twice(repeated):
    said = {"choices": [{"message": {"content": "hi"}}], "usage": {"prompt_tokens": 300, "completion_tokens": 9}}
    request = replace(ask("x" * 800, model="openai:m"), repeated=repeated)

    async def play():
        async with server(response(200, json.dumps(said).encode(), "Content-Type: application/json")) as url:
            performer = agents(base_url=url, prices={"openai:m": (10.0, 20.0)})
            try:
                return await performer.perform(request)
            finally:
                await performer.close()

    usage = asyncio.run(play()).usage
    assert (usage.input_tokens, usage.output_tokens) == (300, 9)
    assert usage.unreported_input == (100 if repeated else 0)
    assert usage.unreported_money == pytest.approx(0.001 if repeated else 0.0)
    failed = request.progress.usage()
    assert failed.unreported_input == (100 if repeated else 0), "also if its reply is of no use"


def test_a_scripted_call_that_is_repeated_costs_nothing_more(script):
    spec = script({"reply": "hi"})
    once, twice = (
        perform(agents(default_model=spec), replace(ask("x" * 800), repeated=repeated)) for repeated in (False, True)
    )
    assert once.usage == twice.usage
