"""Which origins tools may send requests to, with which secrets, and which of them may be private addresses.

- An origin gets requests if the user named it (`[http] allow`, `RIPSTOP_HTTP_ALLOW`, `--allow`), or has agreed to it in
  this project.
- An origin that the user named may also be on a private address. One that was only agreed to may not.
- A secret goes only to an origin for which the user has agreed to it by name, no matter who named the origin.
"""

from collections.abc import Iterable
from pathlib import Path

from ripstop.kernel.errors import UsageError

from .consent import Consent, Consents
from .endpoints import parse_origin


def parse_allowed(text: str, where: str) -> str:
    """The origin of an address that the user allows. Raises `UsageError`."""
    address = parse_origin(text.strip(), where)
    if address.path:
        raise UsageError(
            f"{where} names the path {address.path!r}, but an origin is allowed as a whole. Write {address.origin}."
        )
    return address.origin


class EndpointConsents:
    """What the user has named and agreed to. Consents are read at every look, so that a new one counts at once."""

    def __init__(
        self, allowed: Iterable[str] = (), project: Path | None = None, consents: Consents | None = None
    ) -> None:
        self._allowed = frozenset(parse_allowed(one, "An address under [http] allow") for one in allowed)
        self._project = str((project or Path.cwd()).resolve())
        self._consents = consents or Consents()

    def allow_private(self, origin: str) -> bool:
        """Whether an origin may be on a private address."""
        return origin in self._allowed

    def missing(self, origin: str, secrets: Iterable[str] = ()) -> Consent | None:
        """What the user would have to agree to before an origin gets a request with these secrets.

        Raises `UsageError` if the consents cannot be trusted.
        """
        wanted = frozenset(secrets)
        if origin in self._allowed and not wanted:
            return None
        agreed, known = False, set[str]()
        for consent in self._consents.all():
            of, *names = consent.content.split(" ")
            if consent.kind == "endpoint" and consent.project == self._project and of == origin:
                agreed = True
                known.update(names)
        if (agreed or origin in self._allowed) and wanted <= known:
            return None
        return Consent("endpoint", " ".join((origin, *sorted(wanted | known))), self._project)
