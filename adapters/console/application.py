"""The application: every page's routes behind one layer of protection."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from . import health, person, runs, sign_in, waiting, work
from .entrance import Protection
from .site import NotDoneError, Site

PAGES: Final = (sign_in, waiting, person, runs, health, work)
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
