"""``mnemoscope audit deviations``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from ....memory.errors import ConfigurationError
from ....telemetry.event.format import usd
from ....telemetry.text import utc_text
from ..exit_codes import INCOMPLETE, UNHEALTHY
from ..options import AuditUrl, Json, Since
from ..output import fields, minute, print_answer
from ..times import time_us

if TYPE_CHECKING:
    from ....audit.deviations import Deviation, Deviations

_SHOWN = 5


def deviations(
    since: Since = "7d",
    before: Annotated[
        str,
        typer.Option(metavar="AGE|TIME", help="Where what is usual begins, likewise."),
    ] = "35d",
    audit_url: AuditUrl = None,
    json: Json = False,
) -> None:
    """
    Show runs of agents that are not as the days before, and work that earned nothing.

    Reads the audit trail and changes nothing. Exits with 1 if runs deviate, and with 3 if there is
    no audit trail, or too little in it to compare with.
    """
    from ....audit.deviations import find_deviations
    from ..scope import open_trail

    now_us = time.time_ns() // 1_000
    since_us, before_us = time_us(since, "--since", now_us), time_us(before, "--before", now_us)
    if not before_us < since_us < now_us:
        raise ConfigurationError("--before must be before --since, and --since in the past")
    found = find_deviations(open_trail(audit_url), since_us, now_us, before_us=before_us)
    print_answer(_document(found), Text("\n".join(_lines(found, since_us))), json=json)
    if found.findings:
        raise typer.Exit(UNHEALTHY)
    if found.unknown or not found.judged:
        raise typer.Exit(INCOMPLETE)


def _lines(found: Deviations, since_us: int) -> Iterator[str]:
    yield f" {found.judged:,} runs since {minute(since_us)} UTC"
    for each in found.findings:
        yield ""
        yield f" {each.agent}: {each.runs:,} runs, where {each.expected:.1f} were to be expected"
        yield from (f"   {said}" for said in _said(each))
        for run in each.newest[:_SHOWN]:
            at = minute(run.at_us)[5:]
            yield f"     {at}  {run.run or f'trace {run.trace_id}'}"
        if (more := each.runs - _SHOWN) > 0 and each.newest:
            yield f"     and {more:,} more"
    if not found.findings and found.judged:
        yield " None deviates from the days before."
    for agent, operation, runs in found.unknown:
        yield f" unknown: {agent} {operation}: {runs} runs before, 50 are needed"
    if found.cut:
        yield f" {found.cut:,} runs were counted in parts: too many were under way at once"
    yield from _idle(found)


def _said(finding: Deviation) -> Iterator[str]:
    from ....audit.deviations.runs import WHOLE_RUN

    if finding.new:
        yield f"touched a {finding.new} that no run of it had touched before"
    where = "" if finding.operation == WHOLE_RUN else f"{finding.operation}: "
    for measure, found, usual in finding.evidence:
        figures = f" ({found:,.3g}, usually {usual:,.3g})" if usual != 1 else ""
        times = f"{found / usual:.2g} times" if usual > 0 else "more than"
        yield f"{where}{times} the usual {measure}{figures}"


def _idle(found: Deviations) -> Iterator[str]:
    from ....audit.deviations import idle_work as idle

    by_agent: dict[str, dict[str, float]] = {}
    for (agent, operation, _what), amount in found.idle.items():
        if operation:
            by_agent.setdefault(agent, {})[operation] = amount
    if by_agent:
        yield ""
        yield " What costs without earning, as far as events tell:"
    for agent, seconds in sorted(by_agent.items(), key=lambda each: -sum(each[1].values())):
        name, every = max(seconds, key=lambda each: seconds[each]), sum(seconds.values())
        yield f" {agent}: {every:,.0f} s, {seconds[name] / (every or 1):.0%} of them in {name}"
        got = {
            what: amount
            for (of, operation, what), amount in found.idle.items()
            if of == agent and not operation
        }
        if same := got.get(idle.SAME_ANSWERS):
            yield f"   {same:,.0f} recalls repeated one of their run: {got[idle.SAME_S]:,.1f} s"
        if together := got.get(idle.TOGETHER_S):
            yield f"   recalls in a row, made at once, would save {together:,.1f} s"
        spent = got.get(idle.COST_USD, 0.0)
        for what, said in (
            (idle.FAILED_USD, "of model calls that failed"),
            (idle.AGAIN_USD, "of model calls that repeated one of their run"),
            (idle.DISCARDED_USD, "of runs whose outcome was discarded"),
        ):
            if wasted := got.get(what):
                yield f"   {usd(wasted)} of {usd(spent)} {said}"


def _document(found: Deviations) -> dict[str, Any]:
    return {
        "judged": found.judged,
        "findings": [
            {
                **fields(each, "agent operation new runs expected"),
                "evidence": [one._asdict() for one in each.evidence],
                "at": utc_text(each.at_us),
                "newest": [
                    {"run": run.run, "trace": run.trace_id, "at": utc_text(run.at_us)}
                    for run in each.newest
                ],
            }
            for each in found.findings
        ],
        "unknown": [
            dict(zip(("agent", "operation", "runs"), each, strict=True)) for each in found.unknown
        ],
        "cut": found.cut,
        "idle": [
            {"agent": agent, "operation": operation or None, "what": what, "amount": amount}
            for (agent, operation, what), amount in sorted(found.idle.items())
        ],
    }
