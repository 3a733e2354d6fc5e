"""Documents whose folder was moved: their runs were begun elsewhere, and their files are here now."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ripstop.kernel.effects import Answer, Command
from ripstop.kernel.errors import UsageError
from ripstop.runtime.ports import Kind, Performer, Refused, Request
from ripstop.security.trusted_folders import TrustedFolders

WORKSPACE = "workspace"


def settings_in(root: Path) -> dict[str, Any]:
    """Where the document of a run in this folder stands, and where its agents put their files."""
    return {"folder": str(root), "workspace": str(root / WORKSPACE)}


class Relocated:
    """A performer that is told where the folder of a run is now, not where it was when the run began.

    `places`: the folder's root, by what the ids of all its runs begin with. A folder that only the journal names
    is used if it is `trusted`.
    """

    def __init__(self, performer: Performer, places: Mapping[str, Path], trusted: TrustedFolders | None = None) -> None:
        self._performer = performer
        self._places = places
        self._trusted = trusted

    async def perform(self, request: Request) -> Answer | None:
        return await self._performer.perform(self._here(request))

    async def probe(self, request: Request) -> Answer | None:
        return await self._performer.probe(self._here(request))

    def kind(self, command: Command) -> Kind:
        return self._performer.kind(command)

    def provider(self, request: Request) -> str:
        return self._performer.provider(request)

    def _here(self, request: Request) -> Request:
        root = self._places.get(request.run_id.partition(".")[0])
        if root:
            return replace(request, settings={**request.settings, **settings_in(root)})
        try:
            untrusted = untrusted_folder(request.settings, self._trusted) if self._trusted else None
        except UsageError as error:  # the user's consents cannot be trusted, so nothing is covered
            raise Refused(str(error), "tool") from error
        if untrusted:
            raise Refused(
                f"{untrusted} was not named for this journal by its user, so nothing is written there.", "tool"
            )
        return request


def untrusted_folder(settings: Mapping[str, Any], trusted: TrustedFolders) -> Path | None:
    """A folder that a run would use, although nobody here has named it."""
    workspace, documents = settings.get("workspace"), settings.get("folder")
    if documents and not trusted.cover_documents(Path(str(documents))):
        return Path(str(documents))
    if workspace and not trusted.cover(Path(str(workspace))):
        return Path(str(workspace))
    return None
