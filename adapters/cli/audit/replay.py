"""``mnemoscope audit replay``: the routes of recorded runs, held against a graph or other runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ..exit_codes import INCOMPLETE, SEVERAL_PEOPLE, UNHEALTHY, USAGE, CommandError, say
from ..options import TIMES, AuditUrl, Json, Tenant
from ..output import print_json
from ..times import time_us

if TYPE_CHECKING:
    from ....audit.queries.blast_radius import RunAddress
    from ....audit.queries.routes import RouteFinding, Superstep
    from ....audit.record.rows import AuditRow


def replay(
    run: Annotated[str | None, typer.Option(metavar="ID", help="A run or thread.")] = None,
    last: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Instead: the last N runs.")
    ] = None,
    graph: Annotated[
        str | None,
        typer.Option(metavar="MODULE:NAME", help="A compiled graph, or a function of one."),
    ] = None,
    compare: Annotated[
        str | None, typer.Option(metavar="ID", help="Another run, to compare with.")
    ] = None,
    thread: Annotated[
        str | None, typer.Option(metavar="ID", help="The run's thread, if it has another name.")
    ] = None,
    skip: Annotated[
        list[str] | None,
        typer.Option(metavar="ROUTER", help="Do not call it again: it reads a clock, say."),
    ] = None,
    feature: Annotated[str | None, typer.Option(metavar="NAME", help="This feature alone.")] = None,
    agent: Annotated[str | None, typer.Option(metavar="NAME", help="This agent alone.")] = None,
    since: Annotated[str, typer.Option(metavar="AGE|TIME", help=f"With --last: {TIMES}")] = "30d",
    budget: Annotated[
        list[str] | None,
        typer.Option(metavar="UNIT=N", help="At most N usd, tokens or seconds a run."),
    ] = None,
    loop: Annotated[
        int, typer.Option(metavar="N", min=1, help="The same decision N times a turn at most.")
    ] = 25,
    schema: Annotated[
        bool, typer.Option("--schema", help="Ask whether outputs fit their schemas, too.")
    ] = False,
    tenant: Tenant = None,
    audit_url: AuditUrl = None,
    json: Json = False,
) -> None:
    """
    Derive the routes of recorded runs, and name the first step that differs.

    With --graph each step must be one that its edges allow, and its routers decide again on the
    states that its checkpointer has: no node, model or tool runs. With --compare a run is compared
    with another one, with --last alone each with those before. Exits with 1 if a run differs or is
    over a limit, with 3 if that cannot be told.
    """
    from ....audit.queries import routes
    from ..scope import open_trail

    if (run is None) == (last is None) or (compare and last):
        raise CommandError("pass one of --run and --last, and --compare with --run alone", USAGE)
    limits, log = dict(map(_limit, budget or ())), open_trail(audit_url)
    compiled = None if graph is None else _compiled(graph)

    def recorded(name: str | None) -> dict[RunAddress, list[AuditRow]]:
        since_us = None if name else time_us(since, "--since", time.time_ns() // 1_000)
        found = routes.recorded_runs(
            row
            for row in log.rows(run=name, since_us=since_us)
            if agent in {None, row.agent} and tenant in {None, row.tenant or ""}
            if feature is None or f"{row.feature}/".startswith(f"{feature}/")
        )
        if name is not None and len(found) > 1:
            raise CommandError("several runs have that name: pass --tenant", SEVERAL_PEOPLE)
        return found

    found, documents, answers = recorded(run), list[dict[str, Any]](), set[str]()
    runs, before = list(found)[-(last or 1) :], list(found)[: -(last or 1)]
    others = recorded(compare) if compare else {each: found[each] for each in before}
    known = [routes.route_of(rows) for rows in others.values()] if graph is None else []
    for address in runs:
        steps, findings = routes.route_of(found[address]), list[routes.RouteFinding]()
        if compiled is not None:
            findings += _replayed(compiled, steps, thread or run or address.run, skip or ())
        elif compare or last:
            findings.append(routes.compared(steps, known))
            known.append(steps)
        findings += routes.audited(steps, found[address], limits, loop)
        if schema and "schema" not in {each.check for each in findings}:
            said = "which outputs fitted is not on record"
            findings.append(routes.RouteFinding("schema", routes.UNKNOWN, said))
        answers |= {each.answer for each in findings}
        documents.append(_document(address, steps, findings))
    _show(documents, json=json)
    is_unknown = routes.UNKNOWN in answers or not runs
    raise typer.Exit(UNHEALTHY if routes.DIFFERS in answers else INCOMPLETE * is_unknown)


def _compiled(address: str) -> Any:
    from ..scope import found_at

    if not hasattr(found := found_at(address, "--graph"), "get_subgraphs"):
        raise CommandError(f"{address} is no compiled graph: name what compile() returned", USAGE)
    return found


def _limit(text: str) -> tuple[str, float]:
    unit, _, number = text.partition("=")
    try:
        if unit in {"usd", "tokens", "seconds"} and float(number) >= 0:
            return unit, float(number)
    except ValueError:
        pass
    raise CommandError("--budget takes usd=N, tokens=N or seconds=N", USAGE)


def _replayed(
    graph: Any, steps: Sequence[Superstep], thread: str, skipped: Sequence[str]
) -> Iterator[RouteFinding]:
    from ....audit.queries.routes import OK, UNKNOWN, RouteFinding
    from ...langgraph.routes import GraphReplay

    replay = GraphReplay(graph, thread, skipped)
    found = list(replay.check(steps))
    yield from found or [RouteFinding("graph", OK, f"its edges allow all {len(steps)} supersteps")]
    if replay.decided and not any(each.check == "router" for each in found):
        yield RouteFinding(
            "router", OK, f"{replay.decided} successors are the same on recorded states"
        )
    for why, count in sorted((+replay.undecided).items()):
        yield RouteFinding("router", UNKNOWN, f"{count} decisions: {why}")


def _document(
    address: RunAddress, steps: Sequence[Superstep], findings: Sequence[RouteFinding]
) -> dict[str, Any]:
    def at(step: Superstep) -> dict[str, Any]:
        path, nodes = step.names
        seqs = [each.seq for each in step.tasks]
        return {"path": path, "step": step.step, "nodes": nodes, "seqs": seqs, "text": f"{step}"}

    return {
        "run": address.run,
        "tenant": address.tenant,
        "route": [at(each) for each in steps],
        "findings": [
            {**each._asdict(), "at": None if each.at is None else at(each.at)} for each in findings
        ],
    }


def _show(documents: Sequence[dict[str, Any]], *, json: bool) -> None:
    console = Console(highlight=False)
    # A line is one for scripts, however long.
    line = partial(console.print, markup=False, soft_wrap=not console.is_terminal)
    if json:
        print_json(documents)
        return
    if not documents:
        say("no such run is on record")
    for each in documents:
        line(f" run {each['run']}")
        for step in each["route"] if len(documents) == 1 else ():
            line(f"   {step['step']:>4}  {step['text']}")
        for found in each["findings"]:
            at = f"step {found['at']['step']}: " if found["at"] else ""
            line(f" {found['answer']:<12} {found['check']:<7} {at}{found['said']}")
