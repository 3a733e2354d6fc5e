"""The demonstration's folder, settings and runs. Its runs have fixed names, so that pages and tests can name them.

workflows/          graphs, boards and a bot, as a project has them
scripts/            what the agents say; `everyone.jsonl` is the default model
.workflows/ roles/  hand-off documents, and who works on them
projects/todo/      a delivery project
.ripstop/           the journal, the workspaces, and the consents of this world
"""

from pathlib import Path
from typing import Any

from msgspec import Struct

from ripstop.files.private_files import OURS
from ripstop.settings.settings_file import Models, Settings

EVERYONE = "everyone"
"""The script with every agent's lines: what a person starts in the demonstration is answered, too."""

RUNS = {
    "completed": "review-t2p6h",
    "fork": "review-wc48z",
    "family": "newsletter-d6m2x",
    "poem": "haiku-n6k2y",
    "failed": "haiku-q5w2z",
    "limit": "debate-b7n3k",
    "stopped": "translate-h5c9r",
    "guard": "essay-m9t4d",
    "doubt": "deploy-r8v4n",
    "board": "tdd-x4qv7",
    "question": "haibao-p2c8w",
    "review": "cowork-h7d2n",
    "document": "task-s6f2p",
    "unclear_document": "task-v5k8m",
    "handoff": "chat:shop:4711",
    "ready": "chat:shop:4698",
    "closed": "chat:shop:4655",
    "stuck": "import-j9x5e",
    "set_aside": "review-f4b9j",
    "working": "review-k3f9x",
}
"""The runs worth a look, by what they show."""


class DemoWorld(Struct, frozen=True):
    folder: Path
    """Absolute, without links."""
    settings: Settings
    """What an `App` on this world needs: its journal, and scripted agents as the default model."""
    runs: dict[str, str]
    """`RUNS`."""

    @property
    def project(self) -> Path:
        """The folder of the delivery project."""
        return self.folder / "projects" / "todo"

    @property
    def journal(self) -> Path:
        return journal_in(self.folder)

    @property
    def is_built(self) -> bool:
        """Whether it was built to its end."""
        return self._mark.exists()

    def mark_as_built(self) -> None:
        self._mark.touch()

    @property
    def _mark(self) -> Path:
        return self.folder / OURS / "demonstration"

    def script(self, name: str) -> str:
        """The model that says what a script says."""
        return _script(self.folder, name)

    def workflow(self, name: str) -> Path:
        return self.folder / "workflows" / name

    def workspace(self, run_id: str) -> Path:
        """The folder of a run that has no other: inside this world, whatever the current folder is."""
        return self.folder / OURS / "workspaces" / run_id


def world_in(folder: Path) -> DemoWorld:
    """The world of a folder, built or not."""
    folder = folder.resolve()
    settings: dict[str, Any] = {"store": f"sqlite:{journal_in(folder)}", "models": Models(_script(folder, EVERYONE))}
    return DemoWorld(folder, Settings(**settings), dict(RUNS))


def journal_in(folder: Path) -> Path:
    return folder / OURS / "journal.db"


def _script(folder: Path, name: str) -> str:
    return f"script:{folder / 'scripts' / name}.jsonl"
