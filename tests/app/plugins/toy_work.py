"""The process that the crash test of the toy style kills.

    python -m tests.app.plugins.toy_work FOLDER

Starts the one run of the folder (or finds it), works on it, and is also the person who is content with it.
"""

import asyncio
import os
import sys

from ripstop.app.application import App
from ripstop.app.plugins import BUILT_IN, Plugins
from ripstop.app.settings.settings_file import Models, Settings
from ripstop.kernel.errors import UsageError
from tests.toy_style import PLUGIN


async def main() -> None:
    settings = Settings(models=Models(default="script:replies.jsonl"))
    async with App(settings, plugins=Plugins([*BUILT_IN, PLUGIN])) as app:
        run = await app.start("home.chores", key="saturday")
        while not (await app.wait(run)).run.ended:
            for question in await app.desk():
                try:
                    await app.answer(question, "yes", by="ann")
                except UsageError:
                    pass  # it was answered before the process was killed
            await asyncio.sleep(0.01)


os.chdir(sys.argv[1])
asyncio.run(main())
