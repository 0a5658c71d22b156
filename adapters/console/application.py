"""The application: every page's routes, and the ways in and out, behind one layer of protection."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route

from . import health, person, runs, waiting, work
from .entrance import Protection
from .sessions import Right
from .site import NotDoneError, Site, Visit

PAGES: Final = (waiting, person, runs, health, work)
"""The modules with a page, each with ``routes(site)``."""

NOT_FOUND: Final = 404

_STYLE = Path(__file__).parent / "style.css"


def build_console(site: Site, webhooks: Sequence[Route] = ()) -> Starlette:
    """
    Return the ASGI application of *site*, for a server to serve.

    Args:
        site: What the pages share.
        webhooks: Routes that prove by a signature who it is, as no browser does.
    """

    def not_done(request: Request, exc: Exception) -> Response:
        session = site.signed_in(request)
        if isinstance(exc, NotDoneError):
            return site.message(session, exc.status, exc.sentence)
        is_there = isinstance(exc, HTTPException) and exc.status_code != NOT_FOUND
        sentence = "This page knows no such method." if is_there else "There is no such page."
        return site.message(session, 405 if is_there else NOT_FOUND, sentence)

    def style(_request: Request) -> Response:
        return FileResponse(_STYLE, media_type="text/css")

    return Starlette(
        routes=[
            Route("/style.css", style),
            *_sign_in_routes(site),
            *(each for page in PAGES for each in page.routes(site)),
            *webhooks,
        ],
        middleware=[
            Middleware(
                Protection, entrance=site.entrance, unguarded=[each.path for each in webhooks]
            )
        ],
        exception_handlers={HTTPException: not_done, NotDoneError: not_done},
    )


def _sign_in_routes(site: Site) -> list[Route]:
    """Return the routes of the sign-in page and of signing out."""

    async def enter(request: Request) -> Response:
        if site.entrance.token is None:
            return RedirectResponse("/", 303)
        # A scanner of links asks by HEAD, and is not to use the token up.
        given = request.query_params.get("token") if request.method == "GET" else None
        if request.method == "POST":
            given = (await site.read_form(request)).get("token", "")
        if given is None:
            return site.render("sign_in.html", None, title="Sign in", is_refused=False)
        if not site.entrance.token.redeem(given.strip()):
            return site.render("sign_in.html", None, 403, title="Sign in", is_refused=True)
        # A session of before goes: whoever set its cookie shares nothing with this one.
        site.sessions.end(request.cookies.get(site.cookie))
        secret, _session = await site.begin(site.entrance.who, site.entrance.rights)
        response = RedirectResponse("/", 303)
        site.set_cookie(response, secret)
        return response

    return [
        Route("/sign-in", enter, methods=["GET", "POST"]),
        site.route("/sign-out", _leave, needs=Right.SEE, method="POST"),
    ]


def _leave(visit: Visit) -> Response:
    site = visit.site
    site.sessions.end(visit.request.cookies.get(site.cookie))
    response = site.render("sign_in.html", None, title="Signed out", is_refused=False)
    response.delete_cookie(site.cookie, path="/", httponly=True, samesite="strict")
    return response
