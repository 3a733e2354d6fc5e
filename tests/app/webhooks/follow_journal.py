"""A process that delivers to a webhook until it is killed.

python -m tests.app.webhooks.follow_journal JOURNAL URL
"""

import asyncio
import sys
from pathlib import Path

from ripstop.app.settings.settings_file import Settings
from ripstop.app.settings.tables import Webhook
from ripstop.app.webhooks.service import following
from ripstop.engine.clock import ProcessClock
from ripstop.engine.engine import Engine
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.security.consent import EndpointConsents
from tests.app.webhooks.telling_style import REGISTRY


async def follow(path: Path, url: str) -> None:
    journal = SqliteJournal(path, REGISTRY.codec)
    engine = Engine(journal, REGISTRY, ProcessClock())
    async with following(engine, Settings(webhooks={"crm": Webhook(url, "CRM_SECRET")}), EndpointConsents()):
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(follow(Path(sys.argv[1]), sys.argv[2]))
