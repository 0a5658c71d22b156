"""A gate's own goldens: drafts of which is known what the gate has to say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from ...telemetry.event.verdict_event import Point
from ...telemetry.text import is_a
from ..errors import ConfigurationError
from .agreement import AUTO, SHADOW
from .approval import Approval, Draft
from .rule import Facts

GOES_ON: Final = "pass"
"""What is expected of a draft that would go on. Of others: the reason of the verdict."""

KINDS: Final = {
    "a clean pass": GOES_ON,
    "a step mismatch": "below_bar",
    "a hard veto": "violation",
    "an empty run": "",
}
"""What a set has to have one of each, by what is expected; of the last, the draft is empty."""

_KEYS = frozenset({"name", "draft", "steps", "values", "expect"})


class GateGolden(NamedTuple):
    """
    A draft, and what a gate has to say of it.

    Attributes:
        name: Its name, which is shown.
        expect: ``pass``, or the reason of the verdict that holds it.
        said: What the gate says, likewise. Empty: nothing yet.
        evidence: Its scores and codes.
    """

    name: str
    draft: Draft
    expect: str
    said: str = ""
    evidence: Mapping[str, Any] = MappingProxyType({})

    @property
    def is_right(self) -> bool:
        """Whether it is what was expected."""
        return self.said == self.expect


def read_goldens(path: Path) -> list[GateGolden]:
    """
    Return the goldens in the YAML file *path*: a list of mappings.

    Raises:
        ConfigurationError: It cannot be read, or has something else in it. One line, no value.
        OSError: There is no such file.
    """
    import yaml  # noqa: PLC0415 - few have such a file

    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError:
        raise ConfigurationError(f"{path}: it is no YAML") from None
    if not is_a(found, list) or not found:
        raise ConfigurationError(f"{path}: expected a list of goldens")
    return [_golden(each, f"{path}: golden {place}") for place, each in enumerate(found, 1)]


def _golden(found: Any, where: str) -> GateGolden:
    known: dict[Any, Any] = found if is_a(found, dict) else {}
    if not {"name", "expect"} <= known.keys() <= _KEYS:
        raise ConfigurationError(
            f"{where}: expected name and expect, and of draft, steps and values what there is"
        )
    steps: list[Any] = known.get("steps") or []
    values: dict[str, Any] = known.get("values") or {}
    if not (is_a(steps, list) and is_a(values, dict)):
        raise ConfigurationError(f"{where}: steps are a list, values a mapping")
    draft = Draft(str(known.get("draft") or ""), steps=steps, values=values)
    return GateGolden(str(known["name"]), draft, str(known["expect"]))


def judged(gate: Approval, golden: GateGolden) -> GateGolden:
    """Return *golden* with what *gate* says, at the bar of production; its judges are asked."""
    verdict = gate.decide(Facts(Point.NODE, known=gate.facts(golden.draft)))
    goes_on = verdict.reason in {SHADOW, AUTO, "drawn"}
    said = GOES_ON if goes_on else verdict.reason
    return golden._replace(said=said, evidence=verdict.evidence)


def lacking(goldens: Iterable[GateGolden]) -> list[str]:
    """Return the kinds that none of *goldens* is of."""
    found = {each.expect if each.draft.text.strip() else "" for each in goldens}
    return [name for name, kind in KINDS.items() if kind not in found]
