"""
Langfuse's own form of an outcome: a score of the trace.

Its OTLP endpoint makes no scores of spans' attributes, so they go to its API beside that endpoint,
with the headers that the export has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import unquote

import orjson

from ..event.event import Event
from ..event.outcome_event import OUTCOME, OutcomeEvent
from ..network.timeouts import failure, time_limit
from .settings import setting, timeout_s

_OTLP: Final = "/api/public/otel"
_SCORES: Final = "/api/public/scores"


class LangfuseScores:
    """
    Sends the outcomes among events.

    Args:
        address: Of Langfuse's scores.
    """

    def __init__(self, address: str) -> None:
        from ..network.http import BoundedSession  # noqa: PLC0415 - the importer pays for no client

        self._address = address
        self._session = BoundedSession()
        self._timeout_s = timeout_s("TRACES")
        # As the exporters read them: percent-encoded pairs, which is where Langfuse's keys are.
        for pair in setting("TRACES", "HEADERS").split(","):
            name, _, value = pair.partition("=")
            if name.strip():
                self._session.headers[name.strip()] = unquote(value.strip())

    def send(self, batch: Sequence[Event]) -> None:
        """
        Send the scores that *batch* has. Sent again, they are the same scores.

        Raises:
            DeliveryError: Langfuse did not take one.
        """
        for event in batch:
            if (outcome := event.part(OutcomeEvent)) is None or outcome.value is None:
                continue
            with time_limit(self._timeout_s):
                try:
                    answer = self._session.post(
                        self._address,
                        data=orjson.dumps(_score(event, outcome)),
                        headers={"content-type": "application/json"},
                    )
                    answer.raise_for_status()
                except Exception as exc:
                    raise failure("Langfuse") from exc

    def close(self) -> None:
        """Close the connections."""
        self._session.close()


def langfuse_scores() -> LangfuseScores | None:
    """Return the sender, if the collector of traces is Langfuse."""
    base, found, _rest = setting("TRACES", "ENDPOINT").partition(_OTLP)
    return LangfuseScores(f"{base}{_SCORES}") if found else None


def _score(event: Event, outcome: OutcomeEvent) -> dict[str, Any]:
    return {
        "id": event.event_id,
        "traceId": event.trace.trace_hex,
        "name": OUTCOME,
        "value": outcome.value,
        "dataType": "NUMERIC",
        "comment": outcome.outcome,
    }
