"""The page *Runs*: what each recalled, wrote and cost, and how far a memory of it has come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from starlette.responses import Response
from starlette.routing import Route

from ...audit.bundle.sentences import counted
from ...audit.database.errors import AmbiguousMemoryError, UnknownMemoryError
from ...audit.erasure.withdrawal import withdraw
from ...audit.erasure.withdrawal_words import is_checkpoint, radius_lines, withdrawal_line
from ...audit.queries.blast_radius import BlastRadius, ReachedMemory, blast_radius
from ...audit.queries.provenance import recalls
from ...audit.queries.runs import FoundRuns, of_run, verdict_of
from ...audit.queries.spending import Spent
from ...audit.queries.text_extraction import text_of
from ...audit.record.rows import AuditRow
from ...memory.scope import Mnemoscope
from ...telemetry.event.event import VERDICT, OperationClass
from .sessions import Right
from .site import NotDoneError, Site, Visit, second
from .tables import Table, cost, cut, micros_of, page_of
from .work import Ended, Work

_DAY_US = 86_400_000_000
_GONE = "This session has found no such run: search again."


class _Wanted(NamedTuple):
    """A memory whose radius is looked at."""

    memory_id: str
    store: str | None
    collection: str | None


def routes(site: Site) -> list[Route]:
    """Return the routes of the page."""
    radius, see = "/radius/{handle}", Right.SEE
    # Withdrawing deletes for good, as erasing does: to decide is to release or refuse what waits.
    return [
        site.route("/runs", _recent, needs=see),
        # A run may be called by its customer: whoever tries names tries people.
        site.route("/runs", _search, needs=see, method="POST", is_look=True),
        site.route("/runs/{handle}/{number}", _run, needs=see),
        site.route("/radius", _find_memory, needs=see, method="POST", is_look=True),
        site.route(radius, _radius, needs=see),
        site.route(f"{radius}/withdraw", _withdraw, needs=Right.ERASE, method="POST"),
    ]


# -- search ----------------------------------------------------------------------------------------


def _recent(visit: Visit) -> Response:
    return _found(visit, {})


def _search(visit: Visit) -> Response:
    return _found(visit, visit.form)


def _found(visit: Visit, form: Any) -> Response:
    site, now_us = visit.site, round(visit.site.clock() * 1e6)
    given = {name: form.get(name, "").strip() for name in ("run", "agent", "feature")}
    run, agent, feature = (each or None for each in given.values())
    since, until = form.get("since", "").strip(), form.get("until", "").strip()
    # An old run is found by its name; without one, a day is what one looks for.
    since_us = 0 if given["run"] else now_us - _DAY_US
    found = site.log.runs(
        since_us=micros_of(since) if since else since_us,
        until_us=1 + (micros_of(until, at_end=True) if until else now_us),
        run=run,
        agent=agent,
        feature=feature,
    )
    runs = tuple(each for each in found.runs if site.tenant in {None, each.address.tenant or ""})
    shown = {**given, "since": since, "until": until}
    # By place and not by name in the address: a run may be called by its customer.
    handle = visit.session.keep(replace(found, runs=runs))
    more: dict[str, Any] = {"handle": handle, "asked": shown, "runs": runs, "cost": cost}
    return visit.page("runs.html", title="Runs", is_cut=found.is_cut, **more)


# -- one run ---------------------------------------------------------------------------------------


def _run(visit: Visit) -> Response:
    site, path = visit.site, visit.request.path_params
    runs = visit.kept(FoundRuns, _GONE).runs
    run = {str(number): each for number, each in enumerate(runs)}.get(path["number"])
    if run is None:
        raise NotDoneError(404, _GONE)
    rows = (each for each in site.log.rows(run=run.address.run) if not each.nested)
    page = page_of(visit, of_run(rows, run.address))
    _seal(visit, "run", page.items)
    more: dict[str, Any] = {"events": [*_events(site, page.items)], "said": _said, "cost": cost}
    return visit.page("run.html", title="Runs", run=run, page=page, **more)


def _seal(visit: Visit, purpose: str, rows: Iterable[AuditRow]) -> None:
    """Record which events are looked at: the trail knows their people, and by no name."""
    seqs = sorted({each.seq for each in rows})
    said = {"session": visit.session.number, "purpose": purpose, "events": seqs}
    visit.site.log.append_log_event("console.look", said)


def _events(site: Site, rows: Sequence[AuditRow]) -> Iterator[tuple[AuditRow, list[Any]]]:
    """Yield each operation with its memories, each beside the write of what was recalled."""
    written = {
        (each.row.seq, seen.memory_id): seen.origin
        for each in recalls(site.log, rows)
        for seen in each.seen
    }
    for row in rows:
        is_saved = row.op_class is OperationClass.CHECKPOINT
        named = () if is_saved else row.memories
        yield row, [(each, written.get((row.seq, each.memory_id))) for each in named]


def _said(row: AuditRow) -> str:
    if row.operation == VERDICT:
        verdict = verdict_of(row)
        would = f" ({verdict['would']})" if verdict["would"] else ""
        return f"{verdict['outcome']}{would}: {verdict['reason']}"
    if row.usage is not None:
        used, spent = row.usage, Spent.of_call(row.usage, row.status)
        tokens = f"{used.input_tokens:,} tokens in, {used.output_tokens:,} out"
        return f"{used.model}: {tokens}, {cost(spent)}"
    return cut(text_of(row.content))


# -- blast radius ----------------------------------------------------------------------------------


def _find_memory(visit: Visit) -> Response:
    form = visit.form
    wanted = _Wanted(
        form.get("memory", ""), form.get("store") or None, form.get("collection") or None
    )
    _radius_of(visit.site, wanted)
    return visit.redirect(f"/radius/{visit.session.keep(wanted)}")


def _radius_of(site: Site, wanted: _Wanted) -> BlastRadius:
    try:
        found = blast_radius(
            site.log, wanted.memory_id, store=wanted.store, collection=wanted.collection
        )
    except UnknownMemoryError:
        raise NotDoneError(404, "No memory is known by that id.") from None
    except AmbiguousMemoryError:
        raise NotDoneError(
            409, "Several memories have that id: name store and collection."
        ) from None
    # Another tenant's is none: the answer says nothing of it either.
    if site.tenant is not None and not _is_of(found.memories[0], site.tenant):
        raise NotDoneError(404, "No memory is known by that id.")
    return found


def _is_of(memory: ReachedMemory, tenant: str) -> bool:
    return all((each.tenant or "") == tenant for each in memory.writes)


def _wanted(visit: Visit) -> tuple[_Wanted, BlastRadius, tuple[ReachedMemory, ...]]:
    """Return the memory of the path, its radius, and what of it may be shown and withdrawn."""
    wanted = visit.kept(_Wanted, _GONE)
    radius, tenant = _radius_of(visit.site, wanted), visit.site.tenant
    shown = tuple(each for each in radius.memories if tenant is None or _is_of(each, tenant))
    return wanted, radius, shown


def _phrase(memories: Sequence[ReachedMemory]) -> str:
    return f"withdraw {counted(len(memories), 'memory', 'memories')}"


def _radius(visit: Visit) -> Response:
    wanted, radius, memories = _wanted(visit)
    tenant = visit.site.tenant
    runs = [each for each in radius.runs if tenant in {None, each.address.tenant or ""}]
    rows = (row for each in (*memories, *runs) for row in _rows_of(each))
    unnamed = [each for each in radius.without_run if tenant in {None, each.tenant or ""}]
    theirs = replace(radius, memories=memories, runs=tuple(runs), without_run=tuple(unnamed))
    _seal(visit, "blast_radius", rows)
    wrote = [
        (each.hops, each.address.store, each.address.memory_id, *_written(each))
        for each in memories[:200]
    ]
    saw = [
        (each.hops, each.address.run, second(each.reached_us), each.through.memory_id)
        for each in runs[:200]
    ]
    return visit.page(
        "radius.html",
        title="Runs",
        memory=wanted.memory_id,
        handle=visit.request.path_params["handle"],
        totals=[*radius_lines(theirs)],
        tables=[
            Table("Runs that saw it", ("hops", "run", "since (UTC)", "by memory"), saw, "None."),
            Table("It, and what they wrote later", _WROTE, wrote),
        ],
        phrases=(_phrase(memories[:1]), _phrase(memories)),
        has_scope=visit.site.scope is not None,
    )


_WROTE = ("hops", "store", "memory", "written (UTC)", "by", "origin", "content")


def _rows_of(each: Any) -> Sequence[AuditRow]:
    return each.writes if isinstance(each, ReachedMemory) else each.recalls


def _written(memory: ReachedMemory) -> tuple[str, ...]:
    if not memory.writes:
        return "before the trail, or erased", "", "", ""
    first = memory.writes[0]
    by = " ".join(filter(None, (first.agent, first.run)))
    text = "" if is_checkpoint(memory) else cut(text_of(first.content))
    return second(memory.reached_us), by, memory.origin or "", text


def _withdraw(visit: Visit) -> Response:
    scope, given = visit.site.scope, visit.form.get("phrase", "").strip()
    if scope is None:
        raise NotDoneError(409, "Withdrawing needs the stores. Nothing was changed.")
    memories = _wanted(visit)[2]
    # With their number: what was reached since the page was shown is not withdrawn unseen.
    chosen = {_phrase(memories): memories, _phrase(memories[:1]): memories[:1]}.get(given)
    if chosen is None:
        raise NotDoneError(400, "The phrase is another one. Nothing was changed.")
    _seal(visit, "withdraw", (row for each in chosen for row in each.writes))
    back = f"/radius/{visit.request.path_params['handle']}"
    work = Work("Withdrawal", partial(_withdrawn, scope, chosen), back)
    return visit.redirect(f"/work/{visit.session.keep(work, is_work=True)}")


def _withdrawn(scope: Mnemoscope, memories: Sequence[ReachedMemory], work: Work) -> Ended:
    with scope.memory_stores() as stores:
        done = withdraw(scope.audit, stores, memories, work.tell)
    rows = [
        (each.outcome, each.memory.address.store, each.memory.address.memory_id, each.why)
        for each in done.memories
    ]
    heads = ("outcome", "store", "memory", "why")
    return Ended(
        withdrawal_line(done), done.complete, done.unsettled, [Table("Memories", heads, rows)]
    )
