"""A request to an agent, without an engine."""

from ripstop.kernel.effects import AskAgent
from ripstop.kernel.prompt import Message, Prompt
from ripstop.runtime.ports import Request


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
    settings=None,
    records=(),
):
    async def history():
        return list(records)

    return Request(
        run_id=run,
        number=number,
        command=AskAgent(agent=agent, model=model, max_tokens=max_tokens),
        attempt=attempt,
        ordinal=ordinal,
        settings=settings or {},
        prompt=Prompt(messages=messages or (Message(role="user", text=text),), tools=tools, schema=schema),
        history=history,
    )
