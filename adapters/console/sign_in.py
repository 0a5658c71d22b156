"""The ways in and out: the one-time token, and sign-out."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from .sessions import Right
from .site import Site, Visit


def routes(site: Site) -> list[Route]:
    """Return the routes of the sign-in page and of signing out."""

    async def enter(request: Request) -> Response:
        if site.entrance.token is None:
            return RedirectResponse("/", 303)
        given = request.query_params.get("token")
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
