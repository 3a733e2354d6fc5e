"""Runs of a style from outside survive SIGKILL at every fail-point, with nothing lost and nothing done twice."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ripstop.app.plugins import BUILT_IN, Plugins
from ripstop.app.settings.settings_file import Settings
from ripstop.app.stores import open_engine
from ripstop.engine.failpoints import FAILPOINTS
from ripstop.kernel.events import Ended
from tests.app.plugins.installation import REPLIES, environment
from tests.toy_style import PLUGIN
from tests.toy_style.events import ChoreFinished

MAX_LIVES = 8
"""Processes that are killed in a chain; the next one lives."""
UNREACHED = {
    "files.before_rename",  # it writes no files through an agent
    "files.after_rename",
    "messages.before_send",  # it sends no messages on a channel
    "messages.after_send",
    "worker.before_probe",  # nothing that it does is probeable, or unsafe
    "worker.after_probe",
    "worker.before_doubt",
    "worker.before_retry",  # nothing fails for a while
    "worker.after_retry",
    "worker.before_park",  # it starts no other run
    "worker.after_park",
}
REACHED = [name for name in FAILPOINTS if name not in UNREACHED]
SOME_AND_ALL = [pytest.param(name, marks=pytest.mark.soak if at % 4 else ()) for at, name in enumerate(REACHED)]
"""Every fourth one is in the short form: `crash` kills a built-in style at all of them."""


def live(folder: Path, failpoint: str = "", count: int = 1) -> int:
    armed = {"RIPSTOP_FAILPOINT": f"{failpoint}:{count}"} if failpoint else {}
    command = [sys.executable, "-m", "tests.app.plugins.toy_work", str(folder)]
    done = subprocess.run(command, env=environment(**armed), capture_output=True, text=True, timeout=240)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


async def check(folder: Path) -> None:
    settings = Settings(store=f"sqlite:{folder / '.ripstop' / 'journal.db'}")
    async with open_engine(settings, plugins=Plugins([*BUILT_IN, PLUGIN])) as engine:
        assert await engine.journal.verify() == []
        (info,) = (await engine.runs()).items
        events = [record.event for record in await engine.journal.read(info.run_id)]
        assert [event.outcome for event in events if isinstance(event, Ended)] == ["completed"]
        assert [event.index for event in events if isinstance(event, ChoreFinished)] == [0, 1]
        assert await engine.result(info.run_id) == {"reports": ["Done, 1.", "Done, 2."]}
        document = await engine.journal.document("chores", info.run_id)
        assert document is not None and json.loads(document)["done"] == ["Done, 1.", "Done, 2."]
        reports = Path(folder, ".ripstop", "workspaces", info.run_id).glob("*.txt")
        assert sorted(path.read_text().splitlines()[1] for path in reports) == ["Done, 1.", "Done, 2."]


@pytest.mark.long
@pytest.mark.parametrize("failpoint", SOME_AND_ALL)
def test_it_survives_kills_at(failpoint: str, tmp_path: Path) -> None:
    (tmp_path / "home.chores").write_text("agent: helper\npause: 0.01\nchore: sweep\nchore: dust\n")
    (tmp_path / "replies.jsonl").write_text(REPLIES)
    kills = 0
    if failpoint == "liveness.before_bury":  # only a process that finds a dead one gets there
        assert live(tmp_path, "worker.after_begin") == -signal.SIGKILL
    for life in range(MAX_LIVES):
        if not live(tmp_path, failpoint, count=1 + life % 3 * 2):
            break
        kills += 1
    assert kills, f"{failpoint} was never reached"
    assert live(tmp_path) == 0
    asyncio.run(check(tmp_path))
