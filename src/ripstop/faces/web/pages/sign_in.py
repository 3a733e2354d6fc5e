"""Signing in with a link that works once or with the token, and signing out."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ripstop.faces.http.asgi import RequestRefused

from ..forms import Form, read_form
from ..sessions import SESSION, SESSION_SECONDS, WebSession
from ..site import Site, inside, language_of
from ..words import word


async def login_page(site: Site, request: Request) -> Response:
    """The form; or, with the secret of a link, a session at once."""
    goal = inside(request.query_params.get("next", ""))
    if request.method == "GET" and (secret := request.query_params.get("once", "")):
        session = site.sessions.by_link(secret)
        if session is not None:
            return _signed_in(site, session, goal)
        return await _form(site, request, goal, word(language_of(request), "login.link_is_used"), 401)
    if request.scope[SESSION] is not None:
        return RedirectResponse(goal, 303)
    return await _form(site, request, goal)


async def login(site: Site, request: Request) -> Response:
    form = await read_form(request, site.sessions)
    goal = inside(form.text("next"))
    session = site.sessions.by_token(form.text("token"), form.text("by"))
    if session is None:
        site.sessions.wrong_tokens.count(request.scope)
        return await _form(site, request, goal, word(language_of(request), "login.wrong_token"), 401, form)
    return _signed_in(site, session, goal)


async def logout(site: Site, request: Request) -> Response:
    await site.form(request)
    session: WebSession | None = request.scope[SESSION]
    if session is None:
        raise RequestRefused(422, "You are not signed in with a session.", "A program just stops sending the token.")
    site.sessions.end(session)
    response = RedirectResponse("/login", 303)
    response.delete_cookie(site.sessions.cookie, path="/")
    return response


async def _form(
    site: Site, request: Request, goal: str, wrong: str = "", status: int = 200, form: Form | None = None
) -> Response:
    by = (form.text("by") if form else "") or site.sessions.by
    response = site.fragment(request, "login.html", goal=goal, wrong=wrong, by=by)
    response.status_code = status
    return response


def _signed_in(site: Site, session: WebSession, goal: str) -> Response:
    response = RedirectResponse(goal, 303)
    response.set_cookie(
        site.sessions.cookie,
        site.sessions.write(session),
        max_age=SESSION_SECONDS,
        path="/",
        httponly=True,
        samesite="strict",
    )
    return response
