"""The figures of approval gates, as each scrape of Prometheus reads them."""

from __future__ import annotations

from collections.abc import Iterator

from ...telemetry.prometheus.live import Sample, latest
from .agreement import WINDOW
from .held_writes import Decisions

_APPROVAL_AGREEMENT = latest(
    "mnemoscope_approval_agreement_ratio",
    "Share of humans' decisions that agree with what the gate would have done",
)
_APPROVAL_AUTO = latest(
    "mnemoscope_approval_auto", "1 if the gate goes on by itself, 0 if it asks a human"
)
_APPROVALS_WAITING = latest(
    "mnemoscope_approvals_waiting", "What the rule holds, and no human has decided yet"
)
_APPROVALS_AGE_S = 30.0
_MOST_GATES = 64


def gate_samples(decisions: Decisions) -> Iterator[Sample]:
    """Yield the agreement and state of each gate, and what waits for humans."""
    for gate, share, is_auto, waiting in decisions.figures(WINDOW, _APPROVALS_AGE_S)[:_MOST_GATES]:
        if share is not None:
            yield _APPROVAL_AGREEMENT.sample(share, rule=gate)
        yield _APPROVAL_AUTO.sample(float(is_auto), rule=gate)
        yield _APPROVALS_WAITING.sample(waiting, rule=gate)
