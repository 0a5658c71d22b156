"""
The floors of coverage: what the tests reached of each room's lines and branches, less some.

That is two points, or three lines in a small room: what threads and signals reach is not the same
in any two runs. The floors stand in `coverage_floors.json`, which nobody edits. A room is a folder
of a package; what stands beside these folders is a room by the package's name.

    python -m tests.kit.coverage_floors build/coverage.json [--write]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).with_name("coverage_floors.json")

LINES, BRANCHES = "lines", "branches"

_POINTS, _LINES = 2.0, 3

Floors = dict[str, dict[str, float]]
"""By room and kind: per cent."""


class Share(NamedTuple):
    """How many of a room's lines or branches the tests reached."""

    reached: int
    all: int

    @property
    def percent(self) -> float:
        """The share, in per cent."""
        return 100 * self.reached / self.all


def shares(report: Mapping[str, Any]) -> dict[str, dict[str, Share]]:
    """
    Return the shares of each room, by kind, from a JSON report of coverage.py.

    Raises:
        ValueError: The report has no file of ours, or its format is another.
    """
    found: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    try:
        for path, file in report["files"].items():
            for kind, reached, of_all in _counts(file["summary"]):
                sums = found[_room(path)][kind]
                sums[0] += reached
                sums[1] += of_all
    except (KeyError, TypeError, AttributeError):
        raise ValueError(
            "not a JSON report of coverage.py 7: make one with --cov-report=json"
        ) from None
    if not found:
        raise ValueError("the report has no file of ours: run the tests with --cov")
    return {
        room: {kind: Share(*sums) for kind, sums in kinds.items() if sums[1]}
        for room, kinds in sorted(found.items())
    }


def _counts(summary: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    yield LINES, summary["covered_lines"], summary["num_statements"]
    if "num_branches" in summary:
        yield BRANCHES, summary["covered_branches"], summary["num_branches"]


def _room(path: str) -> str:
    return "/".join(Path(path).parts[:-1][:2])


def misses(found: Mapping[str, Mapping[str, Share]], floors: Floors) -> list[str]:
    """Return a line for each room below a floor, without one, or gone."""
    lines = [
        f"{room}: no floor yet. Write them with `make coverage-floors`"
        for room in found
        if room not in floors
    ]
    for room, kinds in floors.items():
        if room not in found:
            lines.append(f"{room}: there is no such room any more. Write the floors again")
            continue
        lines += [
            f"{room}: {share.percent:.1f} % of its {kind} reached, at least {floor:.0f} % "
            "expected. Test what is new in it"
            for kind, floor in kinds.items()
            if (share := found[room].get(kind)) and share.percent < floor
        ]
    return lines


def raised(found: Mapping[str, Mapping[str, Share]], floors: Floors) -> Floors:
    """Return the floors of *found*. A kind that was not measured keeps its floor."""
    return {
        room: {
            **floors.get(room, {}),
            **{kind: _floor(share) for kind, share in kinds.items()},
        }
        for room, kinds in found.items()
    }


def _floor(share: Share) -> float:
    return float(max(0, int(share.percent - max(_POINTS, 100 * _LINES / share.all))))


def main() -> int:
    """Compare a report with the floors, or write them from it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("report", type=Path)
    parser.add_argument("--write", action="store_true", help="write the floors of this report")
    given = parser.parse_args()
    floors: Floors = json.loads(FILE.read_text(encoding="utf-8"))
    try:
        found = shares(json.loads(given.report.read_text(encoding="utf-8")))
    except (OSError, ValueError) as exc:
        sys.stderr.write(f"{given.report}: {exc}\n")
        return 2
    if given.write:
        text = json.dumps(raised(found, floors), indent=2)
        FILE.write_text(f"{text}\n", encoding="utf-8")
        return 0
    lines = misses(found, floors)
    whole = [share for kinds in found.values() if (share := kinds.get(LINES))]
    reached = Share(sum(each.reached for each in whole), sum(each.all for each in whole))
    sys.stdout.write(
        f"{len(found)} rooms, {reached.percent:.1f} % of {reached.all:,} lines of code reached\n"
    )
    sys.stderr.writelines(f"{line}\n" for line in lines)
    return int(bool(lines))


if __name__ == "__main__":
    raise SystemExit(main())
