"""The shards of a trail, as processes write them."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing

import pytest

from mnemoscope.audit import AuditError
from mnemoscope.memory import context
from tests.kit.patience import GIVE_UP_S
from tests.kit.sharded_trails import TENANTS, recaller
from tests.kit.takeovers import taker


def test_each_tenant_is_in_one_shard(sharded):
    """All of it, and nothing is recorded twice."""
    sharded.write(4, [*TENANTS, None, *TENANTS, None])

    shards = [{each.tenant for each in log.rows()} for log in sharded.log().shards]

    assert set().union(*shards) == {*TENANTS, None}
    assert sum(map(len, shards)) == len(TENANTS) + 1
    assert sharded.log().count() == 2 * len(TENANTS) + 2


def test_what_other_shards_have_is_no_loss(sharded):
    """A writer's numbers have holes in each shard, which none of them declares."""
    sharded.write(4, TENANTS * 3)

    assert [_said(log, "audit.gap") for log in sharded.log().shards] == [0] * 4


def test_one_more_shard_moves_its_share_of_the_tenants_and_nobody_else(sharded):
    """Those who move, move to the new shard."""
    sharded.write(4, TENANTS)
    before = {
        each.tenant: number
        for number, log in enumerate(sharded.log().shards)
        for each in log.rows()
    }
    sharded.write(5, TENANTS)

    new = {each.tenant for each in sharded.log().shards[4].rows()}
    moved = {each for each in TENANTS if each in new}
    counts = [Counter(each.tenant for each in log.rows()) for log in sharded.log().shards]

    assert 0 < len(moved) < len(TENANTS) / 2
    assert all(counts[before[each]][each] == 2 for each in TENANTS if each not in moved)
    assert all(counts[before[each]][each] == 1 for each in moved)


def test_a_process_that_knows_of_fewer_shards_reads_all_of_them(sharded):
    """How many there are is sealed in the first."""
    sharded.write(4, TENANTS)

    assert [sharded.log(number).count() for number in (1, 2, 4, 6)] == [len(TENANTS)] * 4


def test_the_number_of_shards_is_known_before_the_first_event_of_a_new_one(sharded, event_factory):
    """Not from the next checkpoint over them, which may never come."""
    trail = sharded.log(4)
    trail.append([event_factory(tenant=tenant) for tenant in TENANTS])
    trail.close()

    assert sharded.log().count() == len(TENANTS)


def test_the_trail_from_before_there_were_shards_is_the_first_of_them(sharded):
    """What is in it stays, and is found."""
    sharded.write(1, TENANTS)
    sharded.write(4, TENANTS)

    rows = [*sharded.log().shards[0].rows()]

    assert len([*sharded.log().history("ada", TENANTS[0])]) == 2
    assert {each.tenant for each in rows} == set(TENANTS)


def test_processes_of_the_old_number_and_of_the_new_write_side_by_side(sharded):
    """Their shards stay valid, and every answer has both."""
    old, new = sharded.scope(2), sharded.scope(3)
    for scope in (old, new, old, new):
        recall = recaller(scope)
        for tenant in TENANTS:
            with context(tenant=tenant, customer="ada"):
                recall()
    old.close(30)
    new.close(30)

    assert sharded.log().count() == 4 * len(TENANTS)
    assert len([*sharded.log().history("ada", TENANTS[0])]) == 4


def test_strict_refuses_where_a_shard_takes_nothing(sharded, tmp_path):
    """Neither its database nor its spool: whose tenant the next call is of, is not known yet."""
    scope = sharded.scope(2, audit_mode="strict")
    recall = recaller(scope)
    with context(tenant="acme", customer="ada"):
        recall()

    assert sharded.log(2).count() == 1
    scope.close(30)


def test_where_there_is_one_log_nothing_of_shards_is_imported(sharded):
    """Neither to write nor to read."""
    program = """
import sys
from mnemoscope.memory import Mnemoscope, context, load_settings, open_audit
scope = Mnemoscope(load_settings(sinks="audit"))
with context(tenant="acme"):
    scope.observe(store="crm", operation="search_memory", neutral=list)(lambda: [])()
scope.close(30)
open_audit().count()
print([each for each in sys.modules if "audit.shards" in each])
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert ran.stdout == "[]\n"


def test_a_question_of_one_moment_of_one_log_is_refused(sharded):
    """An answer from one shard would look like one from all."""
    sharded.write(2, TENANTS)

    with pytest.raises(AuditError, match="--shard N"):
        sharded.log().reading()


def test_who_has_written_nothing_leaves_nothing(sharded):
    """A process that only had a scope signs no checkpoint over the shards."""
    sharded.write(2, TENANTS)
    before = [log.tables.database.exists() and _size(log) for log in sharded.log().shards]
    sharded.scope(2).close(GIVE_UP_S)

    assert [_size(log) for log in sharded.log().shards] == before


def test_one_process_signs_over_the_shards_for_all_within_a_minute(sharded):
    """Each signs as it ends, besides."""
    sharded.write(2, TENANTS)

    taker(sharded, 2)()

    assert _said(sharded.log().shards[0], "shards.signed") == 1


@pytest.mark.long
def test_what_waits_in_a_spool_elsewhere_is_not_called_lost(sharded):
    """What a writer that is gone has lost is told once every shard has what it left."""
    sharded.write(2, TENANTS)
    with closing(sqlite3.connect(sharded.log().shards[1].path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        sharded.write(2, TENANTS)

        with pytest.raises(AuditError, match="spool of audit shard 1"):
            sharded.log(2).recorded_beside(0, "00000000000000aa")
        assert sharded.log(2).recorded_beside(1, "00000000000000aa") == []


def _size(log):
    with log.reading() as snapshot:
        return snapshot.size


def _said(log, name):
    with log.reading() as snapshot:
        found = snapshot.execute("SELECT count(*) FROM audit_event WHERE operation = ?", (name,))
        return found.fetchone()[0]
