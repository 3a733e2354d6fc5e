"""A request to an agent, without an engine."""

from ripstop.kernel.effects import AskAgent
from ripstop.kernel.prompt import Message, Prompt
from tests.tools.tool_requests import NO_SETTINGS, request_for


def ask(
    text="Say hello.",
    *,
    agent="x",
    number=2,
    attempt=1,
    ordinal=0,
    run="r",
    schema=None,
    tools=(),
    messages=(),
    max_tokens=None,
    model="",
    settings=NO_SETTINGS,
    records=(),
):
    return request_for(
        AskAgent(agent=agent, model=model, max_tokens=max_tokens),
        run,
        number,
        attempt,
        settings,
        records,
        ordinal=ordinal,
        prompt=Prompt(messages=messages or (Message(role="user", text=text),), tools=tools, schema=schema),
    )
