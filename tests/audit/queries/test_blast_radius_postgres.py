"""The blast radius where the trail is in PostgreSQL: the same answer, in another dialect."""

from __future__ import annotations

import pytest

from mnemoscope.audit import AuditLog
from mnemoscope.audit.queries.blast_radius import blast_radius
from mnemoscope.memory.api import OperationClass

pytestmark = pytest.mark.xdist_group("postgres")


def test_it_is_followed_from_run_to_run(postgres_url, subject_keys, event_factory):
    """What was erased since is counted there, too."""
    log = AuditLog(postgres_url, subject_keys)
    steps = [("w", "m1", "r-0"), ("r", "m1", "r-1"), ("w", "m2", "r-1"), ("r", "m2", "r-2")]
    classes = {"w": OperationClass.REMEMBER, "r": OperationClass.RECALL}
    log.append(
        [
            *(
                event_factory(
                    started_ns=second * 10**9,
                    op_class=classes[what],
                    memory_ids=(memory_id,),
                    run=run,
                )
                for second, (what, memory_id, run) in enumerate(steps, 1)
            ),
            event_factory(customer="bob", started_ns=9 * 10**9, memory_ids=("m1",), run="r-3"),
        ]
    )
    log.subjects.erase(log.subjects.resolve("bob", "acme"), "acme")

    radius = blast_radius(log, "m1")
    log.close()

    assert [each.address.run for each in radius.runs] == ["r-1", "r-2"]
    assert [each.address.memory_id for each in radius.derived] == ["m2"]
    assert radius.erased == 1
