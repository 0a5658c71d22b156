"""The page *Waiting*: what rules have left to a human, with its evidence."""

from __future__ import annotations

from starlette.responses import Response
from starlette.routing import Route

from ...audit.decisions import held
from .rights import Right
from .site import Site, Visit


def routes(site: Site) -> list[Route]:
    """Return the routes of the page."""
    return [site.route("/", _waiting, needs=Right.SEE)]


def _waiting(visit: Visit) -> Response:
    with visit.site.log.begun() as snapshot:
        found = [] if snapshot is None else [*held(snapshot).values()]
    waits = [each for each in found if each.waits]
    return visit.page("waiting.html", title="Waiting", waits=waits)
