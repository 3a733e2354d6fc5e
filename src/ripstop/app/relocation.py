"""Where a run's files are now: in the folders of its settings, unless those were moved.

- A folder that this process works in is known by what the ids of its runs begin with; it may have been elsewhere when
  they began.
- A run that another workflow started has no folder in its settings; the style's own calls name it.
- A folder that only the journal names is used if it is trusted.
"""

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from ripstop.engine.performers import Kind, Performer, Refused, Request
from ripstop.kernel.effects import Answer, CallTool, Command
from ripstop.kernel.errors import UsageError
from ripstop.kernel.events import RunSettings
from ripstop.security.consent import TrustedFolders

WORKSPACE = "workspace"


def in_folder(settings: RunSettings, root: Path) -> RunSettings:
    """Settings of a run whose document is in this folder, and whose agents put their files into its workspace."""
    return replace(settings, folder=str(root), workspace=str(root / WORKSPACE))


class Relocated:
    """A performer that gets the present folder of a run, not the one in which the run began.

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

    def offers(self) -> tuple[str, ...]:
        return tuple(self._performer.offers())

    def provider(self, request: Request) -> str:
        return self._performer.provider(request)

    def _here(self, request: Request) -> Request:
        root = self._places.get(request.run_id.partition(".")[0])
        if root:
            return replace(request, settings=in_folder(request.settings, root))
        if named := _named_by_style(request):
            folder = request.settings.where(named)
            request = replace(request, arguments={**request.arguments, "folder": folder})
            if not request.settings.folder:
                request = replace(request, settings=replace(request.settings, folder=folder))
        try:
            untrusted = untrusted_folder(request.settings, self._trusted) if self._trusted else None
        except UsageError as error:  # the user's consents cannot be trusted, so nothing is covered
            raise Refused(str(error), "tool") from error
        if untrusted:
            raise Refused(f"{untrusted} was not named for this journal by its user, so it is not used.", "tool")
        return request


def _named_by_style(request: Request) -> str:
    """The folder of documents that a style's own call names; never one that an agent names."""
    command = request.command
    is_own = isinstance(command, CallTool) and not command.agent
    return str(request.arguments.get("folder") or "") if is_own else ""


def untrusted_folder(settings: RunSettings, trusted: TrustedFolders) -> Path | None:
    """A folder that a run would use, although its user has not named it."""
    if settings.folder and not trusted.cover_documents(Path(settings.folder)):
        return Path(settings.folder)
    if settings.workspace and not trusted.cover(Path(settings.workspace)):
        return Path(settings.workspace)
    return None
