"""The floors of coverage: which rooms fall below them, and how they rise."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.coverage_floors import Share, misses, raised, shares


def report(**files: tuple[int, int]) -> dict[str, Any]:
    """Return a report of files, by their paths with `__` for `/`: lines reached, and all."""
    return {
        "files": {
            f"{path.replace('__', '/')}.py": {
                "summary": {"covered_lines": reached, "num_statements": of_all}
            }
            for path, (reached, of_all) in files.items()
        }
    }


def test_a_room_is_a_folder_of_a_package_with_all_below_it():
    """What stands beside the folders is a room by the package's name."""
    found = shares(report(audit__log=(1, 2), audit__sink__a=(3, 4), audit__sink__deep__b=(5, 8)))

    assert found == {"audit": {"lines": Share(1, 2)}, "audit/sink": {"lines": Share(8, 12)}}


def test_a_room_below_its_floor_is_named_with_both_figures():
    """The line says what was reached, and what to do."""
    (line,) = misses(shares(report(audit__sink__a=(80, 100))), {"audit/sink": {"lines": 81.0}})

    assert line.startswith("audit/sink: 80.0 % of its lines reached, at least 81 % expected.")


def test_a_room_on_its_floor_is_none():
    """A floor is reached, and not passed."""
    assert not misses(shares(report(audit__sink__a=(81, 100))), {"audit/sink": {"lines": 81.0}})


@pytest.mark.parametrize(
    ("found", "floors"),
    [
        pytest.param(report(memory__new__a=(1, 1)), {}, id="new"),
        pytest.param(report(memory=(1, 1)), {"": {}, "memory/old": {"lines": 1.0}}, id="gone"),
    ],
)
def test_a_room_without_a_floor_and_a_floor_without_a_room_are_named(found, floors):
    """Else a new room would be held to nothing."""
    assert len(misses(shares(found), floors)) == 1


def test_floors_are_two_points_below_or_three_lines():
    """What threads and signals reach is not the same in any two runs."""
    found = shares(report(audit__sink__a=(905, 1000), audit__small__a=(49, 50)))

    assert raised(found, {}) == {"audit/sink": {"lines": 88.0}, "audit/small": {"lines": 92.0}}


def test_a_kind_that_was_not_measured_keeps_its_floor():
    """Branches are measured by a target of their own."""
    found = shares(report(audit__sink__a=(905, 1000)))

    written = raised(found, {"audit/sink": {"lines": 1.0, "branches": 70.0}})
    assert written["audit/sink"]["branches"] == 70.0


@pytest.mark.parametrize("given", [{}, {"files": {}}, {"files": {"a/b.py": {}}}, []])
def test_what_is_no_report_is_refused_in_one_line(given):
    """An empty report holds nobody to anything."""
    with pytest.raises(ValueError, match="report"):
        shares(given)
