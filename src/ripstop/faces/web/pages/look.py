"""How the pages look to one person: theme, language, keys. And the map of the keys."""

from starlette.requests import Request
from starlette.responses import Response

from ripstop.http.refusals import RequestRefused

from ..keys import KEYS
from ..site import LOOK, Site, language_of
from ..words import word

YEAR = 365 * 86_400


async def look_page(site: Site, request: Request) -> Response:
    chosen = {name: request.cookies.get(f"ripstop_{name}", values[0]) for name, values in LOOK.items()}
    title = word(language_of(request), "look.title")
    return await site.render(request, "look.html", title=title, section="look", chosen=chosen)


async def set_look(site: Site, request: Request) -> Response:
    form = await site.form(request)
    changed = {name: form.text(name) for name in LOOK if name in form.fields}
    for name, value in changed.items():
        if value not in LOOK[name]:
            allowed = ", ".join(filter(None, LOOK[name]))
            raise RequestRefused(422, f"{name!r} cannot be that.", f"Choose one of: {allowed}.")
    response = site.done(request, "/look", word(changed.get("lang") or language_of(request), "look.saved"))
    for name, value in changed.items():
        response.set_cookie(f"ripstop_{name}", value, max_age=YEAR, httponly=True, samesite="strict", path="/")
    return response


async def keys_page(site: Site, request: Request) -> Response:
    title = word(language_of(request), "keys.title")
    return await site.render(request, "keys.html", title=title, section="look", groups=KEYS)
