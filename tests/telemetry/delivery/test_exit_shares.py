"""One sink hangs or fails as a process ends, in each way there is: the others lose nothing."""

from __future__ import annotations

import threading

import pytest

from mnemoscope.audit import AuditLog
from mnemoscope.audit.sink.sink import AuditSink
from mnemoscope.audit.verification.whole import verify
from mnemoscope.memory.api import SinkOutput, UnavailableError
from mnemoscope.telemetry.delivery.drain import Drain
from mnemoscope.telemetry.delivery.lane_stats import LaneLimits
from tests.kit.patience import GIVE_UP_S

REST_S, CLOSE_S = 1.0, 1.0
CALLS = 200


class Healthy:
    """Takes what it is given."""

    idempotent = True

    def __init__(self, name):
        self.name = name
        self.taken = []
        self.is_closed = False

    def write(self, batch):
        self.taken += batch

    def flush(self, _timeout_s):
        return True

    def close(self, _timeout_s):
        self.is_closed = True


class Faulty(Healthy):
    """Fails or hangs in one of the methods that a sink may have."""

    def __init__(self, where, fault):
        super().__init__("faulty")
        for each in ("write", "flush", "close", "open_ahead", "rest", "leave", "output", "spill"):
            setattr(self, each, fault if each == where else getattr(self, each))

    spills = True

    def open_ahead(self):
        return

    def rest(self):
        return

    def leave(self):
        return

    def output(self):
        return SinkOutput("file", content=False)

    def spill(self, _batch):
        return


@pytest.fixture
def go_on():
    """Return what ends all that hangs."""
    go_on = threading.Event()
    yield go_on
    go_on.set()


def faults(go_on):
    def hangs(*_given):
        go_on.wait(GIVE_UP_S)

    def is_away(*_given):
        raise UnavailableError("away")

    def fails(*_given):
        raise SystemExit(3)

    return {"hangs": hangs, "is away": is_away, "fails": fails}


WHERE = ("write", "flush", "close", "open_ahead", "rest", "leave", "output", "spill")


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize("how", ["hangs", "is away", "fails"])
@pytest.mark.parametrize("where", WHERE)
def test_the_others_have_all_of_it(where, how, go_on, tmp_path, subject_keys, event_factory):
    """They are through, closed, and the audit trail says that its process ended."""
    log = AuditLog(tmp_path / "audit.db", subject_keys)
    audit, healthy = AuditSink(log, checkpoint_every_s=60.0), Healthy("healthy")
    others = [healthy, audit]
    others.insert(len(where + how) % 3, Faulty(where, faults(go_on)[how]))
    drain = Drain(others, limits=LaneLimits(linger_s=0.0, backoff_s=0.0, spill_patience_s=0.1))
    audit.attach(drain)
    writer = drain.writer_id
    for _ in range(CALLS):
        drain.emit(event_factory(writer_id=writer, writer_seq=drain.next_seq()))
    drain.rest(REST_S)
    drain.close(CLOSE_S)

    stats = {each.sink: each for each in drain.stats()}
    found = verify(AuditLog(tmp_path / "audit.db", subject_keys))
    counted = [each for each in healthy.taken if each.writer_seq]
    assert len(counted) == CALLS
    assert healthy.is_closed
    assert stats["healthy"].dropped == stats["audit"].dropped == {}
    assert (found.state, found.writers["stopped"]) == ("ok", 1), found.findings
