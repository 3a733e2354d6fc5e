"""What keeps a bot's tools from working in this process, for those who start it."""

from ripstop.app import App
from ripstop.checks.endpoint_warnings import private_addresses, unset_secrets
from ripstop.checks.trust import NotTrusted

from .bots import KnownBot


def bot_warnings(app: App, known: KnownBot) -> list[str]:
    """Tools that this process does not have, addresses without consent, and secrets that are not set."""
    missing = [tool for tool in known.own_tools if not app.toolbox.has(tool)]
    reasons = list(dict.fromkeys(filter(None, map(app.why_missing, missing))))
    unexplained = [tool for tool in missing if not app.why_missing(tool)]
    if unexplained:
        names = ", ".join(map(repr, unexplained))
        reasons.append(f"This process does not have the tools {names}: calls wait for one that has (--tools MODULE).")
    uses = known.pinned.endpoints
    unagreed = app.trust.unagreed_endpoints(uses)
    private = [
        text for origin, text in private_addresses(uses, app.trust.endpoints).items() if not _says(unagreed, origin)
    ]
    return [*reasons, *map(str, unagreed), *private, *unset_secrets(uses)]


def _says(refusals: list[NotTrusted], origin: str) -> bool:
    """Whether one of the refusals already says how to allow an origin."""
    return any(f"--allow {origin}" in str(refusal) for refusal in refusals)
