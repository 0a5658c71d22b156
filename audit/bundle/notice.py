"""The operator's own statements: what GDPR Art. 15 asks for, and only the controller knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

CONTROLLER = ("name", "contact", "dpo")
ART_15 = (
    *("purposes", "legal_bases", "categories", "recipients", "retention", "rights"),
    *("complaint_authority", "sources", "automated_decisions", "transfers"),
)
SUBJECT = ("verification_method", "verified_at")
_PARTS = {"controller": CONTROLLER, "art15": ART_15, "subject": SUBJECT}
_ONLY_STATED = ("legal_bases", "complaint_authority", "automated_decisions", "transfers")


class Notice(NamedTuple):
    """
    What the operator states, for the first page and the manifest.

    Attributes:
        controller: ``name``, ``contact`` and ``dpo``; "none" where there is no such officer.
        art15: ``purposes``, ``legal_bases``, ``categories``, ``recipients``, ``retention``,
            ``rights``, ``complaint_authority``, ``sources``, ``automated_decisions``,
            ``transfers``.
        subject: ``verification_method`` and ``verified_at``: how it was made sure who asks.
    """

    controller: Mapping[str, Any] = {}
    art15: Mapping[str, Any] = {}
    subject: Mapping[str, Any] = {}

    def legal_basis(self, purpose: str | None) -> Any:
        """Return the legal basis of one purpose: stated for all of them, or by purpose."""
        stated = self.art15.get("legal_bases")
        if isinstance(stated, dict):
            return cast("dict[str, Any]", stated).get(purpose or "")
        return stated

    def missing(self, *, has_purposes: bool, has_sources: bool) -> Iterator[str]:
        """
        Yield what is not stated and cannot be found out, as ``controller.name``.

        Args:
            has_purposes: Whether each event says what it was for.
            has_sources: Whether each memory says where it came from.
        """
        for name in CONTROLLER:
            if not self.controller.get(name):
                yield f"controller.{name}"
        wanted = {*_ONLY_STATED}
        wanted |= set() if has_purposes else {"purposes"}
        wanted |= set() if has_sources else {"sources"}
        for name in ART_15:
            if name in wanted and not self.art15.get(name):
                yield f"art15.{name}"


def parse_notice(found: Any) -> Notice:
    """
    Return the notice that was read as JSON.

    Raises:
        ValueError: It is none, in one line.
    """
    if not isinstance(found, dict):
        raise ValueError(  # noqa: TRY004 - a file that was written wrong
            f"expected an object with {', '.join(_PARTS)}"
        )
    known = cast("dict[str, Any]", found)
    parts = {name: _part(known.pop(name, {}), name) for name in _PARTS}
    if known:
        raise ValueError(f"unknown: {', '.join(sorted(known))}; expected {', '.join(_PARTS)}")
    return Notice(**parts)


def _part(found: Any, name: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise ValueError(f"{name} is to be an object")  # noqa: TRY004 - as above
    part = cast("dict[str, Any]", found)
    unknown = sorted(set(part) - set(_PARTS[name]))
    if unknown:
        expected = ", ".join(_PARTS[name])
        raise ValueError(f"unknown in {name}: {', '.join(unknown)}; expected {expected}")
    return part
