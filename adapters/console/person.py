"""The page *A person*: what is remembered of them, for what it was used, and their two requests."""

from __future__ import annotations

import os
import shlex
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from ...audit.bundle.contract import RequestType
from ...audit.bundle.recipients import recipients_of
from ...audit.database.errors import AmbiguousSubjectError, AuditError, UnknownSubjectError
from ...audit.erasure.run import ErasedMeanwhileError
from ...audit.queries.memory_model import Memory, UsedMemory, remembered_at
from ...audit.queries.runs import SITE
from ...audit.queries.text_extraction import text_of
from ...audit.record.rows import AuditRow
from ...audit.store.person_lookup import CustomerQuery, OtherSpellings, Person
from ...memory.scope import Mnemoscope
from ...telemetry.event.spelling import Identity, bare_id
from ..customer_requests.erase import erase_with_receipt
from ..customer_requests.erasure_screen import erasure_notes, erasure_rows, erasure_verdict
from ..customer_requests.export import (
    bundle_lines,
    bundle_path,
    export_from_log,
    export_from_scope,
    new_request,
    read_notice,
)
from ..customer_requests.requested_person import person_in_log, person_in_scope
from ..customer_requests.who import named, shared_line, who_lines
from .sessions import Right
from .site import NotDoneError, Site, Visit, second
from .tables import Table, cut, micros_of, page_of
from .work import Ended, Work, asked

_CHANGED = "They are known otherwise than you were shown. Nothing was changed: look them up again."


_look_ups = threading.BoundedSemaphore(4)
"""For look-ups in live stores, each of which may hang for good."""


def routes(site: Site) -> list[Route]:
    """Return the routes of the page."""
    erasures = _Erasures()
    at, see, erase_ = "/person/{handle}", Right.SEE, Right.ERASE
    return [
        site.route("/person", _ask, needs=see),
        site.route("/person", _look_up, needs=see, method="POST", is_look=True),
        site.route(at, _remembered, needs=see),
        site.route(f"{at}/history", _history, needs=see),
        site.route(f"{at}/recipients", _recipients, needs=see),
        site.route(f"{at}/export", _export, needs=see, method="POST", is_look=True),
        site.route(f"{at}/erase", _confirm, needs=erase_),
        site.route(f"{at}/erase", erasures.begin, needs=erase_, method="POST"),
    ]


# -- looking up ------------------------------------------------------------------------------------


def _ask(visit: Visit, status: int = 200, **more: Any) -> Response:
    known: dict[str, Any] = {"is_unknown": False, "found": (), "asked": {}, **more}
    return visit.page("person.html", status, title="A person", **known)


def _look_up(visit: Visit) -> Response:
    form, only = visit.form, visit.site.tenant
    customer, tenant = form.get("customer", ""), form.get("tenant") or None
    reference = form.get("reference", "").strip()
    if bool(customer.strip()) == bool(reference):
        raise NotDoneError(
            400, "Say whom to look for: type an id, or a number or alias of the trail."
        )
    # An empty name is a tenant too: that of operations that named none.
    tenant = "" if "of_no_tenant" in form else tenant
    ask = OtherSpellings.LEAVE_OUT if "exact" in form else OtherSpellings.ASK
    query = CustomerQuery(
        customer=customer,
        tenant=tenant if only is None else only,
        also=_names(form.get("also", "").splitlines()),
        all_tenants="any" in form and tenant is None and only is None,
        spellings=OtherSpellings.INCLUDE if "any" in form else ask,
        # On a site of one tenant that is for whoever serves it to say: in stores that several
        # tenants share, it makes another one's records theirs.
        own_stores=visit.site.own_stores or ("own_stores" in form and only is None),
        reference=reference,
    )
    try:
        _find(visit.site, query)
    except UnknownSubjectError as exc:
        visit.seal_refusal("look")
        # In what other tenant they may be known is not said: another one's people are nobody here.
        near = [each for each in exc.others if query.tenant in {None, each.tenant}]
        return _ask(visit, 404, is_unknown=True, found=[] if exc.is_further else _listed(near))
    except AmbiguousSubjectError as exc:
        visit.seal_refusal("look")
        return _ask(visit, 409, found=_listed(exc.found), asked=form)
    return visit.redirect(f"/person/{visit.session.keep(query)}")


def _listed(found: Iterable[Identity]) -> list[tuple[str, str, str]]:
    return [(each.tenant, each.customer, named(each.tenant)) for each in found]


def _names(given: list[str]) -> tuple[str, ...]:
    return tuple(each.strip() for each in given if each.strip())


def _find(site: Site, query: CustomerQuery) -> Person:
    """Return the person by the trail, or else by live stores, which take longer to ask."""
    try:
        return person_in_log(site.log, query)
    except UnknownSubjectError:
        if site.scope is None or query.reference:
            raise
    if not _look_ups.acquire(blocking=False):
        raise NotDoneError(503, "The stores are being asked for others: look again later.")
    future = asked("look-up", partial(person_in_scope, site.scope, query))
    future.add_done_callback(lambda _done: _look_ups.release())
    try:
        return future.result(site.answer_s)
    except FutureTimeoutError:
        raise NotDoneError(503, "The stores do not answer: nobody can be found there.") from None


def _shown(visit: Visit, purpose: str) -> tuple[CustomerQuery, Person]:
    """
    Return the person of the path, once it is sealed that they are looked at.

    Raises:
        NotDoneError: The session has not looked anybody up under this handle, or they are gone.
    """
    query = visit.kept(
        CustomerQuery, "Nobody was looked up here in this session: look them up again."
    )
    if query.reference and purpose != "look":
        raise NotDoneError(409, "Stores know them by their id alone: look them up by it.")
    try:
        # Each time anew: sealing a look at somebody who was erased would make them known again.
        person = _find(visit.site, query)
    except UnknownSubjectError:
        raise NotDoneError(410, "Nobody is known by that id any more.") from None
    if person.uids or not person.is_logged:
        visit.seal_look(person, purpose)
    return query, person


def _page(visit: Visit, query: CustomerQuery, person: Person, **more: Any) -> Response:
    known: dict[str, Any] = {
        "who": query.customer or f"Known as {query.reference}",
        "has_id": not query.reference,
        "lines": [*who_lines(query, person)],
        "handle": visit.request.path_params["handle"],
        "is_under_way": person.is_logged and not person.uids,
        "has_scope": visit.site.scope is not None,
    }
    return visit.page("found.html", title="A person", **known | more)


# -- what is known ---------------------------------------------------------------------------------


def _remembered(visit: Visit) -> Response:
    query, person = _shown(visit, "look")
    as_of = visit.request.query_params.get("as_of", "")
    now_us = round(visit.site.clock() * 1e6)
    at_us = min(micros_of(as_of, at_end=True), now_us) if as_of else now_us
    found = remembered_at(visit.site.log, person, None, at_us)
    known: list[Memory | UsedMemory] = [*found.used, *found.remembered]
    page = page_of(visit, known, as_of=as_of)
    return _page(
        visit,
        query,
        person,
        section="remembered",
        as_of=as_of,
        at=second(at_us),
        counts=(len(found.remembered), len(found.used)),
        page=page,
        text=_text,
    )


def _text(memory: Memory | UsedMemory) -> str:
    return cut(text_of(memory.content) or memory.memory_id)


def _history(visit: Visit) -> Response:
    query, person = _shown(visit, "look")
    done = visit.site.log.history(person) if person.uids else iter(())
    # What a store does inside another one's call is told by that one. A look is nobody's call.
    page = page_of(visit, (each for each in done if not each.nested or each.store == SITE))
    heads = ("time (UTC)", "action", "purpose", "feature", "agent", "run", "hits", "stored content")
    table = Table("What was done with it", heads, [*map(_operation, page.items)], "Nothing yet.")
    return _page(visit, query, person, section="history", tables=[table], page=page)


def _operation(row: AuditRow) -> tuple[Any, ...]:
    status = "" if row.status.is_normal else f": {row.status}"
    action = f"{row.method}{status} ({row.store})"
    names = (row.purpose or "", row.feature or "", row.agent or "", row.run or "")
    hits = "" if row.hits is None else f"{row.hits:,}"
    said = "(erased)" if row.detail is None else cut(text_of(row.content))
    return second(row.occurred_us), action, *names, hits, said


def _recipients(visit: Visit) -> Response:
    query, person = _shown(visit, "look")
    found = recipients_of(visit.site.log, person)
    rows = [_recipient(kind, each) for kind in _RECIPIENTS for each in found[kind]]
    if (unknown := found["cannot_tell"])["n_events"]:
        rows.append(_recipient("cannot_tell", {**unknown, "received": unknown["reason"]}))
    heads = ("kind", "who", "received", "events", "first", "last")
    table = Table("Who received what", heads, rows, "Nobody.")
    return _page(visit, query, person, section="recipients", tables=[table])


_RECIPIENTS = ("agents", "stores", "model_providers", "sinks", "possible_sinks")
_CONTENT = {True: "redacted content", False: "no content", None: "what, it did not note"}


def _recipient(kind: str, each: Mapping[str, Any]) -> tuple[str, ...]:
    who = " · ".join(filter(None, map(each.get, ("provider", "model", "name"))))
    who = who or ("none named" if kind == "agents" else "")
    sink = (each.get("kind"), _CONTENT[each["content"]]) if "content" in each else ()
    received = each.get("received") or ", ".join(filter(None, sink))
    times = ((each[name] or "")[:16].replace("T", " ") for name in ("from", "to"))
    return kind.replace("_", " "), who, received, f"{each['n_events']:,}", *times


# -- export ----------------------------------------------------------------------------------------


def _export(visit: Visit) -> Response:
    query, person = _shown(visit, "export")
    kind = RequestType.PORTABILITY if "portability" in visit.form else RequestType.ACCESS
    act = partial(
        _exported, visit.site, query, person, kind, including_shared="shared" in visit.form
    )
    back = f"/person/{visit.request.path_params['handle']}"
    work = Work("Export", act, back)
    return visit.redirect(f"/work/{visit.session.keep(work, is_work=True)}")


def _exported(
    site: Site,
    query: CustomerQuery,
    person: Person,
    kind: RequestType,
    work: Work,
    *,
    including_shared: bool,
) -> Ended:
    path = os.environ.get("MNEMOSCOPE_NOTICE")
    request = new_request(kind, notice=read_notice(Path(path) if path else None))
    how: dict[str, Any] = {"request": request, "path": bundle_path(work.folder, request)}
    work.tell("exporting")
    lines: list[str] = []
    if site.scope is None:
        bundle = export_from_log(site.log, person, tell=lines.append, **how)
    else:
        work.tell("asking the stores")
        person = person_in_scope(site.scope, query)
        lines += [shared_line(person)] if person.shared_with else []
        how["including_shared"] = including_shared
        bundle = export_from_scope(site.scope, person, tell=lines.append, **how)
    named = replace(bundle, path=Path(bundle.path.name))  # its folder is of this machine
    first, *more = bundle_lines(named, from_log_alone=site.scope is None)
    return Ended(first, bundle.complete, [*more, *lines], file=bundle.path)


# -- erasure ---------------------------------------------------------------------------------------


def _phrase(query: CustomerQuery) -> str:
    # As it can be typed: nobody types what is not seen.
    return f"erase {bare_id(query.customer) or query.customer.strip()}"


def _command(query: CustomerQuery) -> str:
    """Return the command that does the same from a terminal."""
    is_any, is_exact = OtherSpellings.INCLUDE, OtherSpellings.LEAVE_OUT
    words = [
        *("mnemoscope", "audit", "erase", "--customer", query.customer),
        *(() if query.tenant is None else ("--tenant", query.tenant)),
        *(word for each in query.also for word in ("--also", each)),
        *{is_any: ["--any"], is_exact: ["--exact"]}.get(query.spellings, []),
        *(["--own-stores"] if query.own_stores else []),
    ]
    return f"{shlex.join(words)} --scope package.module:name"


def _confirm(visit: Visit) -> Response:
    query, person = _shown(visit, "erase")
    more: dict[str, Any] = {"phrase": _phrase(query), "command": _command(query)}
    return _page(visit, query, person, section="erase", **more)


class _Erasures:
    """The erasures of one site: whoever asks for one that is under way is shown that one."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._latest: dict[frozenset[object], Work] = {}

    def begin(self, visit: Visit) -> Response:
        """Erase the person of the path, if the form has the phrase."""
        site, form = visit.site, visit.form
        query, person = _shown(visit, "erase")
        if site.scope is None:
            raise NotDoneError(409, "Erasing needs the stores. Nothing was changed.")
        if bare_id(form.get("phrase", "")) != bare_id(_phrase(query)):
            raise NotDoneError(400, "The phrase is another one. Nothing was changed.")
        vouched = _names(form.get("vouch", "").split(","))
        act = partial(
            _erased, site.scope, query, person, vouched, including_shared="shared" in form
        )
        whose = frozenset(person.identities)
        with self._guard:
            # Those that have ended are the trail's to remember.
            self._latest = {key: each for key, each in self._latest.items() if each.ended is None}
            work = self._latest.get(whose) or Work("Erasure", act, "/person")
            self._latest[whose] = work
        return visit.redirect(f"/work/{visit.session.keep(work, is_work=True)}")


def _erased(
    scope: Mnemoscope,
    query: CustomerQuery,
    shown: Person,
    vouched: tuple[str, ...],
    work: Work,
    *,
    including_shared: bool,
) -> Ended:
    work.tell("asking the stores who it is")
    try:
        person = person_in_scope(scope, query)
    except UnknownSubjectError:
        raise ErasedMeanwhileError from None
    if {*shown.identities} - {*person.identities} or {*person.uids} - {*shown.uids}:
        raise AuditError(_CHANGED)
    erasure, left = erase_with_receipt(
        scope,
        person,
        work.tell,
        out=work.folder,
        tenant=query.tenant,
        vouched=vouched,
        including_shared=including_shared,
    )
    heads = ("state", "where", "removed", "still there", "left in files")
    return Ended(
        erasure_verdict(erasure).plain,
        erasure.complete and not left.failed,
        [*erasure_notes(erasure), *([] if left.path else [left.line])],
        [Table("What was erased where", heads, [*map(_plain, erasure_rows(erasure))])],
        file=Path(left.path) if left.path else None,
    )


def _plain(row: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(map(str, row))
