"""The rules that count for the documents of a folder: its `handoff.yaml`, and the settings where that says nothing."""

from pathlib import Path

from msgspec.structs import replace

from ripstop.definitions.handoff.reader import FolderRules
from ripstop.definitions.handoff.roles import role_files
from ripstop.kernel.errors import UsageError
from ripstop.settings.settings_file import Docs


def in_force(docs: Docs, rules: FolderRules) -> Docs:
    """The settings of documents in a folder with these rules."""
    return replace(
        docs,
        max_interactions=rules.max_interactions or docs.max_interactions,
        attempts=rules.attempts or docs.attempts,
        language=rules.language or docs.language,
        models={**docs.models, **rules.models},
    )


def first_owner(folder: Path, rules: FolderRules) -> str:
    """Who gets a document for which no owner is named. Raises `UsageError` if nobody works in the folder."""
    roles = [path.stem for path in role_files(folder)]
    if not roles:
        raise UsageError(f"The document has no owner, and there are no roles in {folder}. Name one: --to NAME.")
    return rules.first or roles[0]
