"""A gate's own goldens: drafts of which is known what the gate has to say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from ...telemetry.event.verdict_event import Point
from ...telemetry.text import is_a
from ..errors import ConfigurationError
from .agreement import AUTO, SHADOW
from .approval import LEVELS, Approval, Draft
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
_EXPECTED = (
    GOES_ON,
    "below_bar",
    "violation",
    "unscored",
    *(f"{each}_judge_failed" for each in LEVELS),
)


class GoldensError(ConfigurationError):
    """
    A file of goldens has mistakes.

    Attributes:
        mistakes: A line each, which quotes none of the file's values.
    """

    def __init__(self, path: Path, mistakes: Sequence[str]) -> None:
        super().__init__(f"{path}: mistakes in the goldens: {len(mistakes)}")
        self.mistakes = tuple(mistakes)


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
        ConfigurationError: It cannot be read, or is no list. One line, no value.
        GoldensError: Some of it are no goldens.
        OSError: There is no such file.
    """
    import yaml  # noqa: PLC0415 - few have such a file

    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: it is not UTF-8") from None
    # A date that is none, and brackets without end, are no `YAMLError`.
    except (yaml.YAMLError, ValueError, RecursionError):
        raise ConfigurationError(f"{path}: it is no YAML") from None
    if not is_a(found, list) or not found:
        raise ConfigurationError(f"{path}: expected a list of goldens")
    mistakes = [
        f"golden {place}: {each}"
        for place, golden in enumerate(found, 1)
        for each in _mistakes(golden)
    ]
    if mistakes:
        raise GoldensError(path, mistakes)
    return [_golden(each) for each in found]


def _mistakes(found: Any) -> Iterator[str]:
    known: dict[Any, Any] = found if is_a(found, dict) else {}
    if not {"name", "expect"} <= known.keys() <= _KEYS:
        yield "expected name and expect, and of draft, steps and values what there is"
    elif not is_a(known["expect"], str) or known["expect"] not in _EXPECTED:
        yield f"expect is one of {', '.join(_EXPECTED)}"
    if known.get("name", "") is None or is_a(known.get("name"), dict, list):
        yield "name is a text"
    if is_a(known.get("draft"), dict, list):
        yield "draft is a text"
    if not is_a(known.get("steps"), list, type(None)):
        yield "steps are a list"
    values = known.get("values")
    if values is not None and not (is_a(values, dict) and all(is_a(each, str) for each in values)):
        yield "values are a mapping, by names"


def _golden(known: Mapping[str, Any]) -> GateGolden:
    draft = Draft(
        str(known.get("draft") or ""),
        steps=known.get("steps") or [],
        values=known.get("values") or {},
    )
    return GateGolden(str(known["name"]), draft, known["expect"])


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
