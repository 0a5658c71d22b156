"""``mnemoscope approvals``: held writes and drafts, human decisions, and the rate of agreement."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.text import Text

from ...telemetry.text import utc_text
from .exit_codes import INCOMPLETE, UNHEALTHY, UNUSABLE, USAGE, CommandError, say
from .options import AuditUrl, Json, Limit
from .output import fields, print_answer, print_json

if TYPE_CHECKING:
    from ...audit.decisions import Held
    from ...audit.log import AuditLog

Decided = Literal["approve", "edit", "reject", "skip"]
Approval = Annotated[str, typer.Argument(metavar="ID", help="Its id, as list has it.")]
Gate = Annotated[str, typer.Argument(metavar="GATE", help="Its name, as agreement has it.")]


def list_(
    all_: Annotated[bool, typer.Option("--all", help="Also what was decided.")] = False,
    limit: Limit = 50,
    audit_url: AuditUrl = None,
    json: Json = False,
) -> None:
    """
    List what waits for a decision.

    These are memory writes, and drafts of graphs. The newest are shown, without content.
    """
    from .approvals_screen import list_screen
    from .scope import open_trail

    everything = [each for each in _held(open_trail(audit_url)) if all_ or each.waits]
    # Oldest first, so that the newest are at the end, where a terminal shows them.
    shown = [each.shown() for each in everything[-limit:]]
    screen = list_screen(shown, len(everything))
    print_answer([_document(each) for each in shown], screen, json=json)


def show(approval: Approval, audit_url: AuditUrl = None, json: Json = False) -> None:
    """
    Show a held write or a draft, redacted, with the rule's findings.

    Needs the key of the application: the content is encrypted. Of a blind one the verdict is shown
    once it is decided.
    """
    from ..deciding import content_of, row_of
    from .approvals_screen import show_screen
    from .scope import open_trail

    log = open_trail(audit_url)
    found = _one(log, approval)
    row = row_of(log, found.seq)
    content = content_of(found, row)
    more = {"customer": row.subject_uid, "run": row.run, "content": content}
    document = _document(found.shown()) | more
    print_answer(document, show_screen(found.shown(), row, content), json=json)


def decide(
    approval: Approval,
    choice: Annotated[Decided, typer.Argument(metavar="CHOICE", help="What is decided.")],
    by: Annotated[
        str, typer.Option("--decided-by", metavar="WHO", help="Who it is. Kept as customers are.")
    ],
    why: Annotated[str, typer.Option(metavar="CODE", help="A short code, such as off_topic.")] = "",
    text: Annotated[
        typer.FileText | None,
        typer.Option(metavar="FILE", help="Of an edit: the text in its place. - is what is typed."),
    ] = None,
    audit_url: AuditUrl = None,
    json: Json = False,
) -> None:
    """
    Approve, edit, reject or skip a held memory write or a draft.

    An approved write passes, once, and so does an edited one with the text of --text. Rejected, or
    edited without a text, it stays refused. The run of a draft takes the decision as it is resumed.
    To skip is no decision. Exits with 2 if it is decided already.
    """
    from ..deciding import decide as decide_in
    from .scope import open_trail

    if text is not None and choice != "edit":
        raise CommandError("--text goes with the choice edit alone", USAGE)
    edited = None if text is None else text.read()
    found = decide_in(open_trail(audit_url), approval, choice, by=by, why=why, text=edited)
    if found is None:
        raise _unknown()
    # Whoever decides second is told so, rather than that it was done: the first decision holds.
    if not found.is_first:
        raise CommandError(f"{approval} is decided already: {found.choice}", UNUSABLE)
    held, mode = found.held, found.mode
    if json:
        said = {"approval": approval, "choice": choice, "gate": held.gate, "mode": mode}
        # Of a blind one only now: before, it was decided without.
        verdict = None if choice == "skip" else held.evidence
        print_json({**said, "verdict": verdict})
    else:
        typer.echo(f"{approval}: {choice}; {held.gate} is in mode {mode}")
        if held.is_blind and choice != "skip":
            typer.echo(f"the gate had said: {'a pass' if held.passed else 'no pass'}")


def agreement(audit_url: AuditUrl = None, json: Json = False) -> None:
    """
    Show how far humans agree with each gate, and the mode that it is in.

    Exits with 3 if there is no verdict of a gate.
    """
    from .approvals_screen import agreement_screen
    from .scope import open_trail

    log = open_trail(audit_url)
    found = _agreements(log)
    if json or found:
        print_answer(found, agreement_screen(found), json=json)
    if any(not each["version"] for each in found):
        say("decisions from before versions were recorded count for no version")
    if not found:
        say("no verdict of a gate is recorded")
        raise typer.Exit(INCOMPLETE)


def reset(gate: Gate, audit_url: AuditUrl = None, json: Json = False) -> None:
    """
    Put a gate in shadow, and count the decisions of humans anew.

    In all its versions. For a gate of which a pass was rejected, which blocks it until then.
    """
    from ...audit.decisions import AuditedDecisions
    from ...memory.rules.agreement import SHADOW, change_mode
    from .scope import open_trail

    log = open_trail(audit_url)
    # A mistyped name would begin a gate of its own in the trail.
    versions = [each["version"] for each in _agreements(log) if each["gate"] == gate]
    if not versions:
        raise CommandError(f"no verdict of a gate {gate} is recorded", USAGE)
    trail = AuditedDecisions(log)
    for each in versions:
        change_mode(trail, gate, each, is_reset=True)
    document = {"gate": gate, "mode": SHADOW, "versions": versions}
    print_answer(document, Text(f"{gate} is in mode {SHADOW}; decisions count anew"), json=json)


def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The goldens, YAML.")],
    gate: Annotated[str, typer.Option(metavar="MODULE:NAME", help="Your Approval.")],
    json: Json = False,
) -> None:
    """
    Hold a gate against drafts of which is known what it has to say.

    Its judges are asked, and the bar is that of production; nothing is recorded. Exits with 1 if it
    says something else of one, with 3 if the file lacks one of the four kinds of drafts.
    """
    from ...memory.rules.approval import Approval as ApprovalGate
    from ...memory.rules.gate_goldens import GoldensError, judged, lacking, read_goldens
    from .approvals_screen import goldens_screen
    from .scope import found_at

    try:
        goldens = read_goldens(file)
    except GoldensError as exc:
        for mistake in exc.mistakes:
            say(f"mnemoscope: {file}: {mistake}")
        raise typer.Exit(USAGE) from None
    found = found_at(gate, "--gate")
    if not isinstance(found, ApprovalGate):
        raise CommandError(f"{gate} is a {type(found).__qualname__}, not an Approval", USAGE)
    answers = [judged(found, each) for each in goldens]
    document = [
        {**fields(each, "name expect said"), "right": each.is_right, "evidence": {**each.evidence}}
        for each in answers
    ]
    print_answer(document, goldens_screen(answers), json=json)
    missing = lacking(goldens)
    for each in missing:
        say(f"there is no golden of {each}")
    if not all(each.is_right for each in answers):
        raise typer.Exit(UNHEALTHY)
    if missing:
        raise typer.Exit(INCOMPLETE)


def _held(log: AuditLog) -> list[Held]:
    from ...audit.decisions import held

    with log.verdicts.reading() as snapshot:
        return [*held(snapshot).values()]


def _one(log: AuditLog, approval: str) -> Held:
    from ..deciding import held_of

    found = held_of(log, approval)
    if found is None:
        raise _unknown()
    return found


def _unknown() -> CommandError:
    return CommandError("there is no such approval: see mnemoscope approvals list --all")


def _agreements(log: AuditLog) -> list[dict[str, Any]]:
    from ...audit.decisions import agreement as agreement_of
    from ...audit.decisions import gates, held
    from ...memory.rules.agreement import WINDOW

    with log.verdicts.reading() as snapshot:
        waits = [(each.gate, each.version) for each in held(snapshot).values() if each.waits]
        return [
            {
                **each._asdict(),
                **agreement_of(snapshot, each.gate, each.version, WINDOW),
                "waiting": waits.count((each.gate, each.version)),
            }
            for each in gates(snapshot)
        ]


def _document(held: Held) -> dict[str, Any]:
    return {
        **fields(held, "approval gate reason point passed asks evidence seq"),
        "since": utc_text(held.since_us),
        "decision": held.standing.decision or None,
        "used": held.standing.used,
    }
