"""The page *Waiting*: what rules have left to a human, as cards, and the human's decision."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response
from starlette.routing import Route

from ...memory.rules.decisions import CODE, decision_event
from ...telemetry.event.subject import Subject
from ...telemetry.event.verdict_event import Choice
from ..deciding import Decided, EditError, decide
from .inbox import MOST_CARDS, Card, Inbox
from .sessions import Right
from .site import NotDoneError, Site, Visit
from .tables import page_of

CARDS: Final = 20
"""Cards on one page."""

_CHOICES: Final = {
    Choice.APPROVE: "as it is",
    Choice.EDIT: "it is done with your text; without one, you do something else in its place",
    Choice.REJECT: "it is not done",
    Choice.SKIP: "no decision yet",
}


def routes(site: Site) -> list[Route]:
    """Return the routes of the page."""
    page = _Waiting(Inbox(site.log, site.tenant))
    return [
        site.route("/", page.show, needs=Right.SEE),
        site.route("/decide", page.decide, needs=Right.DECIDE, method="POST"),
        site.route("/decided/{handle}", page.decided, needs=Right.SEE),
    ]


class _Waiting:
    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    def show(self, visit: Visit) -> Response:
        """Show the cards of one page, whose content is sealed as seen."""
        page = page_of(visit, reversed(self._inbox.cards()), CARDS)
        visit.seal_shown([each.seq for each in page.items])
        more: dict[str, Any] = {"page": page, "most": MOST_CARDS, "choices": _CHOICES}
        return visit.page("waiting.html", title="Waiting", **more)

    def decide(self, visit: Visit) -> Response:
        """Seal the decision of the form, or that a stop was seen."""
        why = visit.form.get("why", "").strip()
        try:
            choice = Choice(visit.form.get("choice", ""))
        except ValueError:
            raise NotDoneError(400, "Choose one of approve, edit, reject and skip.") from None
        if choice not in _CHOICES or (why and not CODE.fullmatch(why)):
            raise NotDoneError(400, "A reason is a code: up to 64 of a-z, 0-9, _, - and .")
        approval = visit.form.get("approval", "")
        # Of this tenant or of none: an approval of another is answered as one that is not there.
        card = next(iter(self._inbox.cards(approval)), None)
        if card is not None and card.is_stop:
            return self._acknowledge(visit, card, why)
        if card is None and visit.site.tenant is not None:
            raise NotDoneError(404, "Nothing waits under this id.")
        try:
            found = decide(
                visit.site.log,
                approval,
                choice,
                by=visit.session.who,
                why=why,
                text=visit.form.get("text"),
                redactor=visit.site.redactor,
            )
        except EditError as exc:
            raise NotDoneError(400, str(exc)) from None
        if found is None:
            raise NotDoneError(404, "Nothing waits under this id.")
        return visit.redirect(f"/decided/{visit.session.keep(found)}")

    def _acknowledge(self, visit: Visit, card: Card, why: str) -> Response:
        keys = visit.site.log.ring.current
        event = decision_event(
            card.approval,
            Choice.APPROVE,
            why=why or "seen",
            by=Subject(visit.session.who, tenant=None, keys=keys),
        )
        visit.site.log.append([event])
        return visit.redirect("/")

    def decided(self, visit: Visit) -> Response:
        """Show the decision that holds, and now the verdict of a blind one."""
        found = visit.kept(Decided, "There is no such page.")
        return visit.page("decided.html", title="Decided", found=found)
