"""What any command does with the documents of a folder; every command asks, so imports come late."""

from pathlib import Path
from typing import TYPE_CHECKING

from ripstop.kernel.errors import UsageError
from ripstop.security.files import OURS

from .definition import WORKFLOWS

if TYPE_CHECKING:
    from ripstop.app.application import App
    from ripstop.text.diagrams.diagram import Diagram


class DocumentFiles:
    def attach(self, app: "App", folder: Path) -> None:
        """If there are documents in a folder, their runs find their files here, wherever they were begun."""
        if (folder / WORKFLOWS / OURS).is_dir():
            from .folder import Folder
            from .folder_runs import prefix_of

            app.places[prefix_of(Folder(folder.resolve()))] = folder.resolve()

    def run_named(self, named: str, folder: Path) -> str:
        """The run that the document with an id, or in a file, would have; empty if there are no documents here."""
        from .folder_runs import run_named

        return run_named(named, folder)

    def draw(self, path: Path) -> "Diagram | None":
        """A document's file, or a folder of documents; none if it is neither. Raises `UsageError`."""
        from .drawing import draw_definition, draw_file
        from .reader import READER, read_policy

        if path.suffix.lower() == ".md" and path.is_file():
            try:
                return draw_file(path.read_text(encoding="utf-8"), str(path))
            except (OSError, UnicodeDecodeError) as error:
                raise UsageError(f"{path} cannot be read: {error}") from error
        folder = READER.find(path)
        return draw_definition(read_policy(folder)) if folder else None


SERVICE = DocumentFiles()
