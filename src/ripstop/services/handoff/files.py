"""What an application does with files and folders of documents, whichever command it runs."""

from pathlib import Path
from typing import TYPE_CHECKING

from ripstop.kernel.errors import UsageError
from ripstop.performers.handoff.folder import OURS, WORKFLOWS, Folder

from .run_names import prefix_of, run_named

if TYPE_CHECKING:
    from ripstop.app import App
    from ripstop.drawings.diagram import Diagram


class DocumentFiles:
    def attach(self, app: "App", folder: Path) -> None:
        """If there are documents in a folder, their runs find their files here, wherever they were begun."""
        if (folder / WORKFLOWS / OURS).is_dir():
            app.places[prefix_of(Folder(folder.resolve()))] = folder.resolve()

    def run_named(self, named: str, folder: Path) -> str:
        """The run that the document with an id, or in a file, would have; empty if there are no documents here."""
        return run_named(named, folder)

    def draw(self, path: Path) -> "Diagram | None":
        """A document's file, or a folder of documents; none if it is neither. Raises `UsageError`."""
        from ripstop.definitions.handoff.files import READER
        from ripstop.definitions.handoff.reader import read_policy
        from ripstop.styles.handoff.drawing import draw_definition, draw_file

        if path.suffix.lower() == ".md" and path.is_file():
            try:
                return draw_file(path.read_text(encoding="utf-8"), str(path))
            except (OSError, UnicodeDecodeError) as error:
                raise UsageError(f"{path} cannot be read: {error}") from error
        folder = READER.find(path)
        return draw_definition(read_policy(folder)) if folder else None


SERVICE = DocumentFiles()
