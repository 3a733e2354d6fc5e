"""What a reply does not say about its cost, so that people know how far a limit can be relied on.

Each gap is said once for every run and model.
"""

from .effects import AgentReplied, Limits

USAGE, PRICE = "usage", "price"

Gap = tuple[str, str]
"""(what is missing, the model)."""


def gaps(limits: Limits, reply: AgentReplied) -> tuple[Gap, ...]:
    """A usage that cannot be true, and a cost in money that is not known although money is limited."""
    usage = reply.usage
    found: tuple[Gap, ...] = ()
    if (usage.unreported_input or usage.unreported_output) and usage.is_short:
        found = ((USAGE, reply.model),)
    if limits.money is not None and usage.counted_tokens and not usage.counted_money:
        found = (*found, (PRICE, reply.model))
    return found


def about(gap: Gap, reply: AgentReplied) -> str:
    what, model = gap
    if what == PRICE:
        return f"{model!r} costs no money as far as its settings say, so the money limit does not count its calls."
    reported, counted = reply.usage.tokens, reply.usage.counted_tokens
    said = f"reports {reported} tokens for a call" if reported else "does not report how many tokens a call takes"
    return f"The server of {model!r} {said}; limits count {counted}, by the bytes that were sent and received."
