"""``mnemoscope audit verdicts``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.console import Console

from ....telemetry.text import utc_text
from ..exit_codes import INCOMPLETE, UNHEALTHY, say
from ..options import AuditUrl, Json, ScopeAddress
from ..output import print_json, table

if TYPE_CHECKING:
    from ....audit.record.rows import AuditRow
    from ....memory.rules.recheck import Recheck
    from ....memory.rules.rule import Rule


class _Checked(NamedTuple):
    row: AuditRow
    verdict: dict[str, Any]
    found: Recheck


def verdicts(
    run: Annotated[
        str | None, typer.Option(metavar="ID", help="Of this run or thread. Default: of all.")
    ] = None,
    scope: ScopeAddress = None,
    audit_url: AuditUrl = None,
    json: Json = False,
) -> None:
    """
    Make the decisions of rules again, from the facts that were sealed with them.

    Says where a decision differs from what its facts lead to. Rules of your own are found with
    --scope. Exits with 1 if one differs; with 3 if one cannot be made again, or none is recorded.
    """
    from ....memory.rules.recheck import Answer
    from ..scope import open_trail

    kinds = kinds_of(scope)
    checked = list(_checked(open_trail(audit_url).rows(run=run, with_changed=True), kinds))
    if json:
        print_json([_document(each) for each in checked])
    else:
        _show(checked)
    answers = {each.found.answer for each in checked}
    if Answer.DIFFERS in answers:
        raise typer.Exit(UNHEALTHY)
    if Answer.UNKNOWN in answers or not checked:
        raise typer.Exit(INCOMPLETE)


def kinds_of(scope: str | None) -> dict[str, Callable[..., Rule]]:
    """Return what makes rules by their kind: this package's, and those of the scope at *scope*."""
    from ....memory.rules.aborts import AbortOrder
    from ....memory.rules.agreement import GateAgreement
    from ....memory.rules.approval import Approval
    from ....memory.rules.decisions import Decision
    from ....memory.rules.escalation import Escalation
    from ....memory.rules.origin import Origin
    from ....memory.rules.phases import Phases
    from ....memory.rules.roles import Roles
    from ....memory.rules.spending import Spending
    from ....memory.rules.stopping import Stopping
    from ..scope import scope_at

    kinds: dict[str, Callable[..., Rule]] = {
        each.__name__: each
        for each in (
            Approval,
            Decision,
            Escalation,
            AbortOrder,
            GateAgreement,
            Origin,
            Phases,
            Roles,
            Spending,
            Stopping,
        )
    }
    kinds["Mode"] = GateAgreement  # trails of 0.2 have it by that name
    kinds |= _gates()
    if scope is not None:
        kinds |= {type(each).__name__: type(each) for each in scope_at(scope).rules}
    return kinds


def _gates() -> dict[str, Callable[..., Rule]]:
    try:
        from ...langgraph.gates import IntegrityGate, StagnationGate
    except ImportError:  # LangGraph is not installed
        return {}

    def stagnation(**settings: Any) -> Rule:
        return StagnationGate(**settings)

    def integrity(**settings: Any) -> Rule:
        return IntegrityGate(**settings)

    return {"StagnationGate": stagnation, "IntegrityGate": integrity}


def _checked(rows: Iterable[AuditRow], kinds: dict[str, Callable[..., Rule]]) -> Iterable[_Checked]:
    import orjson

    from ....audit.proof.merkle import leaf_hash
    from ....memory.rules.recheck import recheck
    from ....telemetry.event.event import VERDICT

    for row in rows:
        if row.operation == VERDICT and (sealed := orjson.loads(row.header).get("verdict")):
            # Facts that were changed lead to whatever whoever changed them wants.
            is_sealed = leaf_hash(row.header) == row.leaf
            yield _Checked(row, sealed, recheck(sealed, kinds, is_sealed=is_sealed))


def _document(each: _Checked) -> dict[str, Any]:
    return {
        "seq": each.row.seq,
        "occurred_at": utc_text(each.row.occurred_us),
        "run": each.row.run,
        **each.verdict,
        "recomputed": each.found.answer.value,
        "why": each.found.why or None,
    }


def _show(checked: list[_Checked]) -> None:
    if not checked:
        say("no verdict is recorded for that")
        return
    made = table("seq", "time (UTC)", "rule", "verdict", "reason", "made again")
    for each in checked:
        verdict, found = each.verdict, each.found
        would = f" ({verdict['would']})" if verdict["would"] else ""
        made.add_row(
            f"{each.row.seq}",
            utc_text(each.row.occurred_us)[11:19],
            verdict["rule"],
            f"{verdict['outcome']}{would}",
            verdict["reason"],
            f"{found.answer.value}: {found.why}" if found.why else found.answer.value,
        )
    Console().print(made)
    same = sum(not each.found.why for each in checked)
    Console().print(f" {same} of {len(checked)} verdicts follow from their facts")
