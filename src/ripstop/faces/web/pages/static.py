"""Styles, scripts and icons. Their addresses have the digest of their content, so a browser keeps them."""

import gzip
from functools import cache

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ripstop.http.refusals import RequestRefused

from ..rendering import static_address, static_files
from ..site import Site

TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


async def static_file(site: Site, request: Request) -> Response:
    name = request.path_params["name"]
    files = static_files()
    if name not in files or static_address(name) != request.url.path:
        raise RequestRefused(404, "There is no such file.", "Reload the page.")
    headers = {"cache-control": "public, max-age=31536000, immutable", "vary": "accept-encoding"}
    body = files[name]
    if "gzip" in request.headers.get("accept-encoding", ""):
        body, headers["content-encoding"] = _zipped(name), "gzip"
    return Response(body, headers=headers, media_type=TYPES[name.rpartition(".")[2]])


async def favicon(site: Site, request: Request) -> Response:
    return RedirectResponse(static_address("mark.svg"), 303)


@cache
def _zipped(name: str) -> bytes:
    return gzip.compress(static_files()[name], mtime=0)
