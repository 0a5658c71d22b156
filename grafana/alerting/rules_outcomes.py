"""The alerts about what becomes of runs: success, its cost, labels, cascades, time to detection."""

from __future__ import annotations

from typing import Final

from .promql import ORIGIN, WHOLE, RuleSpeed
from .rule import Alert, RecordingRule, RuleGroup

_PARTS: Final = 'mnemoscope_event_part_total{{part="outcome",measurement="{}"}}'
_WEEK = "7d"
_FEWEST = 20
"""Outcomes in a window below which no alert fires."""

_COST = "service:mnemoscope_cost_per_success:usd1d"
_SUCCESSES = "service:mnemoscope_successes:increase1d"


def outcomes(pace: RuleSpeed) -> RuleGroup:
    """Return the rules about the outcomes that applications post."""
    return RuleGroup(
        name="outcomes",
        rules=[
            *_records(pace, "success", "success", "all"),
            *_records(pace, "cascade", "cascade", "all"),
            *_records(pace, "changed_labels", "changed_labels", "labels"),
            *_records(pace, "detection", "detected_after_s", "detected"),
            RecordingRule(
                name=_COST,
                expr=f"sum by ({ORIGIN}) (increase(mnemoscope_cost_usd_total[{pace('1d')}]))\n"
                f"/ {_sum('success', pace('1d'))}\n",
            ),
            RecordingRule(name=_SUCCESSES, expr=f"{_sum('success', pace('1d'))}\n"),
            Alert(
                name="MnemoscopeTaskSuccessLow",
                expr=f"100 * {_ratio('success')} < 85\nand {_every('success')} >= {_FEWEST}\n",
                severity="warning",
                summary="Agents' results are used less than they should be",
                description=f"{WHOLE} % of the outcomes of the last 7 days were a success: used as "
                "they were, and not refused. The objective is 85 %.",
                board="spend",
            ),
            Alert(
                name="MnemoscopeCostPerSuccessJump",
                expr=f"{_COST} > 1.5 * ({_COST} offset {pace(_WEEK)})\n"
                f"and {_SUCCESSES} >= {_FEWEST}\n",
                severity="warning",
                summary="A success costs half as much again as a week ago",
                description="Model calls cost ${{ $value | humanize }} for each successful outcome "
                "of the last day: more than 1.5 times the same a week ago.",
                board="spend",
            ),
            Alert(
                name="MnemoscopeLabelsUnstable",
                expr=f"100 * {_ratio('changed_labels')} > 5\n",
                severity="warning",
                summary="Canonical inputs have other labels than before",
                description=f"{WHOLE} % of the labels that were compared in the last 7 days are "
                "not what they were at the comparison before. The objective is 95 % alike.",
                board="spend",
            ),
            Alert(
                name="MnemoscopeCascades",
                expr=f"100 * {_ratio('cascade')} >= 10\nand {_every('cascade')} >= {_FEWEST}\n",
                severity="warning",
                summary="Failures of one agent spread to others",
                description=f"In {WHOLE} % of the outcomes of the last 7 days the failure had "
                "begun in another agent. The objective is below 10 %.",
                board="spend",
            ),
            Alert(
                name="MnemoscopeDetectionSlow",
                expr=f"{_ratio('detection')} > 14400\n",
                severity="warning",
                summary="Failures are noticed late",
                description="Failures that were posted in the last 7 days were noticed after "
                "{{ $value | humanizeDuration }} in the mean. The objective is 4 hours.",
                board="spend",
            ),
        ],
    )


def _sum(measurement: str, window: str) -> str:
    return f"sum by ({ORIGIN}) (increase({_PARTS.format(measurement)}[{window}]))"


def _records(pace: RuleSpeed, name: str, some: str, every: str) -> tuple[RecordingRule, ...]:
    window = pace(_WEEK)
    return (
        RecordingRule(name=_ratio(name), expr=f"{_sum(some, window)}\n/ {_sum(every, window)}\n"),
        RecordingRule(name=_every(name), expr=f"{_sum(every, window)}\n"),
    )


def _ratio(name: str) -> str:
    return f"service:mnemoscope_{name}:ratio{_WEEK}"


def _every(name: str) -> str:
    return f"service:mnemoscope_{name}:increase{_WEEK}"
