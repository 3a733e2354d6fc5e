"""Which addresses may get prompts and keys, and which code may run: what the user chose, or has agreed to.

- The user's choices are the provider's own address, `--base-url`, `RIPSTOP_BASE_URL` and the user's own settings file.
- What a project's file or a journal names needs a consent, on loopback too: prompts are worth protecting as well.
- An address that the user chose for a run of this project is remembered, so that `resume` need not be given it again.
- Modules of tools that a project's file names are code of the project: they need a consent before they are imported.
- URLs that a definition's tools call get requests and secrets as `security.consent` says.
- An MCP server that a project's file names is a program of the project, or gets what agents send: it needs a consent to
  its whole table before it is started or connected to.
- A webhook that a project's file names is told what users and agents say, so it needs a consent.
- A key goes in clear text to loopback only; to any other `http:` address it needs a consent, no matter who chose it.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ripstop.app.settings.settings_file import Settings
from ripstop.app.settings.tables import Webhook
from ripstop.kernel.advice import Advice, NextStep
from ripstop.kernel.errors import UsageError
from ripstop.kernel.style import EndpointUse
from ripstop.models.api_key import KEY_NAME, OPENAI
from ripstop.security.addresses import Address, names_private_address, parse_address
from ripstop.security.consent import Consent, Consents, EndpointConsents
from ripstop.security.endpoints import parse_endpoint, parse_origin, secret_names, split_url

# Why calls of tools to their URLs would fail here, though the user has agreed to them.
#
# A consent does not cover a private address: the user has to name it. And a secret has to be in the environment.


def private_addresses(uses: Iterable[EndpointUse], consents: EndpointConsents) -> dict[str, str]:
    """A warning for each private address that tools call and that the user has not named, by its origin."""
    tools: dict[str, dict[str, None]] = {}
    for use in uses:
        try:
            origin = parse_origin(split_url(use.url)[0]).origin
        except UsageError:
            continue  # the check of the definition says so
        if names_private_address(origin) and not consents.allow_private(origin):
            tools.setdefault(origin, {})[use.tool] = None
    return {
        origin: f"{origin} is a private address, so calls of {', '.join(names)} also need --allow {origin}."
        for origin, names in tools.items()
    }


def unset_secrets(uses: Iterable[EndpointUse], environment: Mapping[str, str] | None = None) -> list[str]:
    """A warning for each secret that headers name and that the environment does not have."""
    known = os.environ if environment is None else environment
    tools: dict[str, dict[str, None]] = {}
    for use in uses:
        for name in secret_names(use.headers):
            if not known.get(name, "").strip():
                tools.setdefault(name, {})[use.tool] = None
    return [
        f"The environment variable {name} is not set, so calls of {', '.join(names)} fail."
        for name, names in tools.items()
    ]


class NotTrusted(UsageError):
    """Raised before an address gets anything, or a module runs, that the user has neither chosen nor agreed to."""

    def __init__(self, named: Consent, said: str, ways: str) -> None:
        super().__init__(Advice(said, " ", ways))
        self.named = named
        self.said = said
        """What would happen, without the ways to agree."""

    @property
    def shown(self) -> tuple[str, ...]:
        """Lines that a person needs besides, to decide."""
        return ()

    def agree(self) -> None:
        """Remember that the user agrees. Raises `ConsentsNotWritten`."""
        Consents().remember([self.named])


class Trust:
    """What the user has chosen and agreed to, as it was when this was made."""

    def __init__(
        self,
        settings: Settings,
        project: Path | None = None,
        consents: Consents | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._settings = settings
        self._project = str((project or Path.cwd()).resolve())
        self._consents = consents or Consents()
        self.endpoints = EndpointConsents(settings.http.allow, project, self._consents)
        """The URLs that tools can call."""
        self._has_key = bool((os.environ if environment is None else environment).get(KEY_NAME, "").strip())
        agreed = [one for one in self._consents.all() if one.project == self._project]
        self._agreed = {one.content: parse_address(one.content) for one in agreed if one.kind == "address"}
        self._agreed_tools = {one.content for one in agreed if one.kind == "tools"}
        self._agreed_servers = {one.content for one in agreed if one.kind == "server"}
        self._chosen = {parse_address(OPENAI).origin}
        if settings.models.base_url and not settings.address_from:
            self._chosen.add(parse_address(settings.models.base_url).origin)

    @property
    def key_origins(self) -> frozenset[str]:
        """The origins that may get the key."""
        safe = {origin for origin in self._chosen if not parse_address(origin).is_clear_text}
        return frozenset(safe | {address.origin for address in self._agreed.values()})

    def check(self, base_url: str, run_id: str = "") -> None:
        """Check an address before it is used; `run_id`: the run whose journal names it. Raises `NotTrusted`."""
        if not base_url:
            return
        address = parse_address(base_url, f"The address that is recorded for {run_id!r}" if run_id else "The base URL")
        if address.url in self._agreed:
            return
        if address.origin not in self._chosen:
            raise self._unchosen(address, run_id)
        if address.is_clear_text and self._has_key:
            raise NotTrusted(
                self._named(address),
                f"{address.url} is not encrypted: the key in {KEY_NAME} would be sent in clear text.",
                Advice(f"Use https, unset {KEY_NAME}, or ", _agree("trust_address", address.url), "."),
            )

    def unagreed_tools(self, chosen: Sequence[str] = ()) -> "list[NotTrusted]":
        """A refusal for each module of the settings that needs a consent; `chosen`: those that the user named now."""
        if not self._settings.tools_from:
            return []
        known = {*chosen, *self._agreed_tools}
        return [self._untrusted_module(name) for name in self._settings.tools.modules if name not in known]

    def check_tools(self, chosen: Sequence[str] = ()) -> None:
        """Check the modules of the settings before they are imported. Raises `NotTrusted`."""
        for refusal in self.unagreed_tools(chosen):
            raise refusal

    def unagreed_endpoints(self, uses: Iterable[EndpointUse]) -> "list[NotTrusted]":
        """A refusal for each origin that tools of a definition call and that needs a consent.

        A URL that is wrong gets no request, and is left to the check of its definition.
        """
        tools: dict[str, dict[str, None]] = {}
        secrets: dict[str, set[str]] = {}
        for use in uses:
            try:
                origin = parse_origin(split_url(use.url)[0]).origin
            except UsageError:
                continue
            tools.setdefault(origin, {})[use.tool] = None
            secrets.setdefault(origin, set()).update(secret_names(use.headers))
        found = ((origin, self.endpoints.missing(origin, secrets[origin])) for origin in tools)
        return [
            _unagreed_endpoint(missing, origin, tuple(tools[origin]), sorted(secrets[origin]), self.endpoints)
            for origin, missing in found
            if missing
        ]

    def unagreed_servers(self) -> "dict[str, NotTrusted]":
        """A refusal for each MCP server of the settings that needs a consent, by its name."""
        refusals = {name: self._untrusted_server(name) for name in self._settings.project_servers}
        return {name: one for name, one in refusals.items() if one.named.content not in self._agreed_servers}

    @property
    def project(self) -> str:
        """The project's folder, absolute."""
        return self._project

    def unagreed_webhooks(self) -> "list[NotTrusted]":
        """A refusal for each webhook of the project that needs a consent."""
        agreed = {one.content for one in self._consents.all() if one.kind == "webhook" and one.project == self._project}
        hooks = [(name, self._settings.webhooks[name]) for name in self._settings.project_webhooks]
        return [
            self._untrusted_webhook(name, hook) for name, hook in hooks if f"{hook.url} {hook.secret}" not in agreed
        ]

    def check_webhooks(self) -> None:
        """Check the webhooks of the settings before they are told anything. Raises `NotTrusted`."""
        for refusal in self.unagreed_webhooks():
            raise refusal

    def remember_choice(self, models: Iterable[str], base_url: str) -> None:
        """Remember the address that is recorded of a run with these models, if they use it, the user chose it now, and
        a key is safe there."""
        chosen = "" if self._settings.address_from else self._settings.models.base_url
        if not chosen or chosen != base_url or not any(one.startswith("openai:") for one in models):
            return
        address = parse_address(chosen)
        if not address.is_clear_text and address.url not in self._agreed and self._consents.can_be_kept:
            self._consents.remember([self._named(address)])

    def check_models(self, models: Iterable[str], base_url: str = "", run_id: str = "") -> None:
        """Check the address, if one of these models would use it. Raises `NotTrusted`."""
        if any(model.startswith("openai:") for model in models):
            self.check(base_url or self._settings.models.base_url, run_id if base_url else "")

    def _named(self, address: Address) -> Consent:
        return Consent("address", address.url, self._project)

    def _untrusted_module(self, name: str) -> NotTrusted:
        return NotTrusted(
            Consent("tools", name, self._project),
            f"{self._settings.tools_from} names the Python module {name!r} for its tools, which you have not agreed "
            "to. Its code would run with all your rights.",
            Advice("Look at it and ", _agree("trust"), f", or name it yourself: --tools {name}."),
        )

    def _untrusted_server(self, name: str) -> NotTrusted:
        server = self._settings.mcp[name]
        content = f"{name} {server.content}"
        if server.url:
            effect = "It would get what agents send to its tools."
        else:
            effect = f"It would be started with all your rights{_with_variables(server.env)}."
        return NotTrusted(
            Consent("server", content, self._project),
            f"This project's ripstop.toml names the MCP server {content}, which you have not agreed to. {effect}",
            Advice("Look at it and ", _agree("trust_server", name), "."),
        )

    def _untrusted_webhook(self, name: str, hook: Webhook) -> NotTrusted:
        clear = " in clear text" if parse_endpoint(hook.url).address.is_clear_text else ""
        return NotTrusted(
            Consent("webhook", f"{hook.url} {hook.secret}", self._project),
            f"This project's settings name the webhook {name!r} ({hook.url}), which you have not agreed to. It would "
            f"be told{clear} what is said in conversations, signed with the secret in {hook.secret}.",
            Advice("Look at it and ", _agree("trust"), ", or name it in your own settings file."),
        )

    def _unchosen(self, address: Address, run_id: str) -> NotTrusted:
        who = f"The journal of {run_id!r}" if run_id else self._settings.address_from or "This project"
        clear = " in clear text" if address.is_clear_text else ""
        return NotTrusted(
            self._named(address),
            f"{who} names the address {address.url}, which you have not agreed to. It would get all prompts and the "
            f"key in {KEY_NAME}{clear}.",
            Advice("Look at it and ", _agree("trust", run_id), ", or choose an address: --base-url URL."),
        )


def _unagreed_endpoint(
    named: Consent, origin: str, tools: Sequence[str], secrets: Sequence[str], endpoints: EndpointConsents
) -> NotTrusted:
    clear = " in clear text" if parse_address(origin).is_clear_text else ""
    with_secrets = f", with the secrets {', '.join(secrets)} of your environment{clear}" if secrets else ""
    return NotTrusted(
        named,
        f"Its tools call {origin}, which you have not agreed to. It would get what the tools {', '.join(tools)} are "
        f"given{with_secrets}.",
        _ways_to_agree(origin, bool(secrets), endpoints.allow_private(origin)),
    )


def _ways_to_agree(origin: str, has_secrets: bool, is_allowed: bool) -> str:
    agree = NextStep("trust_workflow", "Agree", "Agree with `{}`")
    if is_allowed:
        return Advice(agree, ": secrets need it even where you have allowed the address.")
    if names_private_address(origin):
        name = f"name it yourself, because it is a private address: --allow {origin}."
        return Advice(agree, f" to the secrets, and {name}") if has_secrets else f"To use it, {name}"
    return Advice(agree, "." if has_secrets else f", or name it yourself: --allow {origin}.")


def _agree(action: str, subject: str = "") -> NextStep:
    return NextStep(action, "agree to it", "agree with `{}`", subject)


def _with_variables(names: Sequence[str]) -> str:
    return f" and get {', '.join(names)}" if names else ""
