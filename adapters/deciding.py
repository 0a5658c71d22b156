"""The decision of a human on what a rule has left to them: one function, wherever they make it."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final, NamedTuple

import orjson

from ..audit.decisions import AuditedDecisions, Held, held
from ..audit.log import AuditLog
from ..audit.queries.text_extraction import texts
from ..audit.record.rows import AuditRow, row_from
from ..audit.store.snapshot import found_by_seqs
from ..memory.building.opening import configured_redactor
from ..memory.errors import ConfigurationError
from ..memory.privacy.engine.redactor import Redactor
from ..memory.rules.agreement import change_mode
from ..memory.rules.decisions import decision_event, edited_event
from ..memory.settings import load_settings
from ..telemetry.event.event import Redacted
from ..telemetry.event.subject import Subject
from ..telemetry.event.verdict_event import Choice, Point
from ..telemetry.text import safe_lines
from .toolkit.type_guards import is_dict

__all__ = ["Decided", "EditError", "decide", "held_of"]

MOST_CHARS: Final = 20_000
"""Characters of a text that can be edited."""


class Decided(NamedTuple):
    """
    The decision that holds of an approval.

    Attributes:
        held: What was held, with the verdict, which may be shown now.
        choice: The decision; ``used`` where a write has passed by it. Skipped: ``skip``.
        is_first: Whether it was made just now. False: another was sealed before, and holds.
        mode: The mode that the gate is in, after it.
    """

    held: Held
    choice: Choice
    is_first: bool
    mode: str


class EditError(ConfigurationError):
    """A text cannot take the place of what was held. Nothing was decided."""


def held_of(log: AuditLog, approval: str) -> Held | None:
    """
    Return what was left to humans under the id *approval*. None: there is no such approval.

    Raises:
        AuditError: The trail cannot be read.
    """
    with log.verdicts.begun() as snapshot:
        return None if snapshot is None else held(snapshot).get(approval)


def row_of(log: AuditLog, seq: int) -> AuditRow:
    """
    Return an event with its content, which is found by its number alone.

    Raises:
        AuditError: The trail cannot be read.
    """
    with log.verdicts.reading() as snapshot:
        (found,) = found_by_seqs(snapshot, [seq])
        return row_from(found)


def content_of(found: Held, row: AuditRow) -> Any:
    """Return what was held as whoever decides may see it. None: it was erased, or not kept."""
    return found.shown_content(orjson.loads(row.content)) if row.content else None


def one_text(content: Any, row: AuditRow) -> str:
    """Return the one text of what was held that can be edited. Empty: none, several, or whose?"""
    is_draft = is_dict(content) and "draft" in content
    known = [str(content["draft"])] if is_draft else [*islice(texts(content), 2)]
    fits = len(known) == 1 and row.subject_uid and len(known[0]) <= MOST_CHARS
    return known[0] if fits else ""


def decide(
    log: AuditLog,
    approval: str,
    choice: str,
    *,
    by: str,
    why: str = "",
    text: str | None = None,
    redactor: Redactor | None = None,
) -> Decided | None:
    """
    Seal a human's decision, and return the one that holds: of all on an approval, the first.

    Two processes that decide at once get one answer. A process that is killed leaves the decision
    or nothing, and whoever decides next has the gate's mode follow it.

    Args:
        log: The audit trail.
        approval: The id of what was held.
        choice: The decision: ``approve``, ``edit``, ``reject`` or ``skip``, which is none.
        by: Who decides. Kept as customers are.
        why: A short code.
        text: With the choice ``edit``, the text with which it is written, or goes on. None, or as
            it was: something else is done in its place.
        redactor: Redacts that text. None: by the settings of the environment.

    Returns:
        The decision that holds. None: there is no such approval.

    Raises:
        ConfigurationError: *why* is no code.
        EditError: There is no one text to be edited, or *text* cannot take its place.
        ValueError: *choice* is none of these.
        AuditError: The trail cannot be read or written. Whether it is decided is not known: it is
            safe to decide again.
    """
    decision, found = Choice(choice), held_of(log, approval)
    if found is None:
        return None
    trail, edit = AuditedDecisions(log), None
    if decision is Choice.EDIT and text is not None and found.waits:
        edit = _edit(log, found, text, redactor)
    event = decision_event(
        approval,
        decision,
        gate=found.gate,
        version=found.version,
        passed=found.passed,
        is_blind=found.is_blind,
        why=why,
        used=found.standing.used,
        by=Subject(by, tenant=None, keys=log.ring.current),
        point=Point(found.point),
        has_text=edit is not None,
    )
    edited = edit and edited_event(event, edit.was, edit.text, edit.tenant)
    recorded = found.waits and trail.record(event, edited, edit.uid if edit else "")
    is_first = recorded or (found.waits and decision is Choice.SKIP)
    if not is_first:
        decision = Choice(trail.standing(approval).decision or Choice.USED)
    # Also after another's decision: whoever made it may have been killed before this.
    return Decided(found, decision, is_first, change_mode(trail, found.gate, found.version))


class _Edit(NamedTuple):
    """A text that was held, the redacted one in its place, whose it is and of which tenant."""

    was: str
    text: Redacted
    uid: str
    tenant: str | None


def _edit(log: AuditLog, found: Held, text: str, redactor: Redactor | None) -> _Edit | None:
    """Return the edit that a human means. None: the text is as it was shown."""
    row = row_of(log, found.seq)
    was = one_text(content_of(found, row), row)
    if not was:
        raise EditError("What is held has no one text that could be edited. Nothing was decided.")
    text = "\n".join(text.splitlines())
    if text == safe_lines(was):
        return None
    if not text.strip() or len(text) > MOST_CHARS or "\0" in text:
        raise EditError(f"An edit has a text, of {MOST_CHARS:,} characters at most.")
    made = redactor or configured_redactor(load_settings(), log.ring.current)
    redaction = made.begin(tenant=row.tenant)
    redacted = redaction.text(text)
    # Of a draft the trail has what stands for personal data, and its run would send just that.
    led = f"- {text}"
    if found.is_draft and (redacted != text or made.text_to_embed(led) != led):
        raise EditError(
            "A draft with personal data, or with what stands for it, is edited where its run is "
            "resumed. Nothing was decided."
        )
    return _Edit(was, redaction.content(redacted), row.subject_uid or "", row.tenant)
