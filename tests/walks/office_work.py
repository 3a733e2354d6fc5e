"""The process that the crash test of the office kills: starts the one run of a folder, or finds it, and works on it.

python -m tests.walks.office_work FOLDER
"""

import asyncio
import os
import sys

from ripstop.app.application import App
from ripstop.app.settings.settings_file import Models, Settings


async def main() -> None:
    async with App(Settings(models=Models(default="script:office/script.jsonl"))) as app:
        run = await app.start("office", key="letter")
        while not (await app.wait(run)).run.ended:
            await asyncio.sleep(0.01)


os.chdir(sys.argv[1])
asyncio.run(main())
