"""An erasure where the trail is in PostgreSQL: nothing is left in the heap after its vacuum."""

from __future__ import annotations

import pytest

from mnemoscope.audit import AuditLog
from mnemoscope.audit.erasure import run
from mnemoscope.audit.erasure.residue_scan import search
from mnemoscope.audit.erasure.run import ErasureRun
from mnemoscope.memory.api import OperationClass, Redacted
from tests.kit.remains import found_in

pytestmark = pytest.mark.xdist_group("postgres")

ADA, TENANT, TEXT = "ada@example.com", "acme", "her grandmother's marzipan recipe"


class NoStores:
    """An application without stores."""

    def settle(self):
        return []

    def stores(self, subject):
        return []

    def erase_pseudonyms(self):
        return None

    def files(self):
        return {}

    def sealed(self):
        return {}


@pytest.fixture
def log(postgres_url, subject_keys):
    log = AuditLog(postgres_url, subject_keys)
    yield log
    log.close()


def test_keys_and_aliases_are_gone_from_the_heap(log, postgres_heap, event_factory):
    """With the control that they are there before; content was never there in clear."""
    write = {"op_class": OperationClass.REMEMBER, "content": Redacted({"text": TEXT})}
    log.append([event_factory(memory_ids=("m1",), **write)])
    log.append([event_factory(customer="bob@example.com", memory_ids=("m2",), **write)])
    uid = log.subjects.resolve(ADA, TENANT)
    with log.reading() as snapshot:
        alias, key, _detail = needles = [(each,) for each in run._samples(snapshot, [uid])]
    assert search(needles, postgres_heap()).traces == len(needles)
    assert found_in(postgres_heap(), TEXT) == set()

    erasure = ErasureRun(log, NoStores(), customer=ADA, tenant=TENANT, vouched=["mem0"]).run()

    assert erasure.complete
    assert erasure.details == 1
    assert search([alias, key], postgres_heap()).traces == 0
    assert log.subjects.resolve(ADA, TENANT) is None
    assert len(list(log.history("bob@example.com", TENANT))) == 1


def test_it_goes_on_after_being_broken_off(log, event_factory):
    """The request is found again by its keyed alias, there as in SQLite."""
    log.append([event_factory()])

    def die(step):
        if step == "searching files":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ErasureRun(log, NoStores(), customer=ADA, tenant=TENANT, tell=die).run()

    erasure = ErasureRun(log, NoStores(), customer=ADA, tenant=TENANT, vouched=["mem0"]).run()

    assert (erasure.complete, erasure.resumed) == (True, True)
