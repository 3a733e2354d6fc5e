"""Whether everything works: the workers, the journal, and the last check of it."""

import asyncio
from pathlib import Path

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from ripstop.runtime.ports import Damage
from ripstop.settings.settings_file import store_path

from ..site import Site, language_of
from ..words import word

MOST_SHOWN = 100


class Verified(Struct, frozen=True):
    at: int
    damage: tuple[Damage, ...]


async def health_page(site: Site, request: Request) -> Response:
    engine = site.engine
    path = store_path(site.app.settings.store)
    context = {
        "workers": await engine.journal.workers(engine.clock()),
        "path": str(path),
        "size": await asyncio.to_thread(_size, path),
        "verified": site.verified,
        "model": site.app.settings.models.default,
        "most": MOST_SHOWN,
    }
    title = word(language_of(request), "health.title")
    return await site.render(request, "health.html", title=title, section="health", **context)


async def verify(site: Site, request: Request) -> Response:
    await site.form(request)
    damage = await site.engine.journal.verify()
    site.verified = Verified(site.engine.clock(), tuple(damage))
    return site.done(request, "/health", damage=len(damage))


async def ready(site: Site, request: Request) -> Response:
    """For probes: that the server answers, and nothing else."""
    return Response(b"ok", media_type="text/plain")


def _size(path: Path) -> int:
    """Of the journal with its log."""
    parts = (path, path.with_name(f"{path.name}-wal"))
    return sum(one.stat().st_size for one in parts if one.exists())
