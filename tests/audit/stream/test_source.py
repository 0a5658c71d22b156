"""The shipping of a log: what is sent, in which order, and from where on."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from hashlib import sha256

import orjson
import pytest

from mnemoscope.audit import AuditError
from mnemoscope.audit.stream import ship
from tests.kit import tampering
from tests.kit.memory_copy import MemoryCopy, ship_all
from tests.kit.merkle_proofs import verify_inclusion
from tests.kit.tlog_proofs import read_tlog_proof


@pytest.fixture
def target():
    return MemoryCopy()


def events(target):
    """Return the events of a copy."""
    return [each for each in target.kept if each.kind == "event"]


def test_every_event_is_sent_once_in_order_as_it_was_sealed(log, target):
    """Header and leaf are the log's own, to the byte."""
    shipped = ship_all(log, target)

    with log.reading() as snapshot:
        rows = snapshot.execute("SELECT seq, header, leaf FROM audit_event ORDER BY seq").fetchall()
        assert shipped.at == shipped.size == snapshot.size
    assert [(each.seq, each.header, each.leaf) for each in events(target)] == rows
    assert all(each.leaf == sha256(b"\0" + each.header).digest() for each in events(target))


def test_a_checkpoint_comes_behind_all_that_it_covers_and_proves_its_last_event(log, target):
    """By a C2SP tlog-proof, read here by its specification."""
    ship_all(log, target)

    leaves = {each.seq: each.leaf for each in events(target)}
    seen = -1
    noted = []
    for each in target.kept:
        if each.kind == "checkpoint":
            proof = read_tlog_proof(each.header)
            assert (proof.index, proof.size) == (each.seq - 1, each.seq)
            assert each.leaf == leaves[proof.index]
            assert verify_inclusion(each.leaf, proof.index, proof.size, proof.path, proof.root)
            assert seen == each.seq - 1
            noted.append(each.seq)
        else:
            seen = each.seq
    assert noted[-1] == len(leaves)


def test_the_events_of_a_run_have_one_key_and_others_that_of_their_writer(log, target):
    """No run is named by it."""
    ship_all(log, target)

    keys = {}
    for each in events(target):
        known = orjson.loads(each.header)
        if known["kind"] == "operation" and known["method"] == "search":
            keys.setdefault(each.key, set()).add(known["wseq"] % 3)
    del keys["00000000000000aa"]  # of an erased customer nothing says in which run it was
    assert sorted(keys.values(), key=min) == [{0}, {1}, {2}]
    assert not any(b"run-" in each.key.encode() for each in target.kept)


def test_details_stay_with_the_log_unless_they_are_wanted_and_their_salts_in_any_case(
    log, path, subject_keys, target
):
    """What is sent of a detail is what the table has: it opens with the customer's key alone."""
    ship_all(log, target)
    assert not any(each.detail for each in target.kept)

    wanted = MemoryCopy()
    ship_all(log, wanted, with_details=True)

    with log.reading() as snapshot:
        kept = snapshot.execute("SELECT seq, sealed, salt FROM audit_detail").fetchall()
    sent = {each.seq: each.detail.sealed for each in events(wanted) if each.detail}
    assert sent == {seq: sealed for seq, sealed, _salt in kept}
    whole = b"".join(repr(each).encode() for each in wanted.kept)
    assert not any(repr(salt).encode()[2:-1] in whole for _seq, _sealed, salt in kept)


def test_it_goes_on_where_the_target_says(log, target, event_factory):
    """What was sent before is not sent again; a checkpoint of that end may be."""
    before = ship_all(log, target).at
    log.append([event_factory(writer_seq=500)])
    del target.batches[:]
    ship_all(log, target)

    seqs = [each.seq for each in events(target)]
    assert seqs == list(range(len(seqs)))
    assert len(seqs) > before


def test_a_stream_that_follows_sends_what_comes(log, target, event_factory):
    """The generator looks again each time that it is asked."""
    shipped = ship(log, target)
    while next(shipped).at < next(shipped).size:
        pass
    log.append([event_factory(writer_seq=501)])

    assert next(shipped).at == next(shipped).size == events(target)[-1].seq + 1


def test_an_end_that_is_signed_later_is_sent_then(path, log, target):
    """Also if no event comes besides."""
    with closing(sqlite3.connect(path)) as connection, tampering.unguarded(connection):
        connection.execute("DELETE FROM audit_checkpoint")
        connection.execute("DELETE FROM audit_head")
    shipped = ship(log, target)
    while (at := next(shipped)).at < at.size:
        pass
    assert not any(each.kind == "checkpoint" for each in target.kept)
    log.checkpoint_now()
    next(shipped)

    assert (target.kept[-1].kind, target.kept[-1].seq) == ("checkpoint", at.size)


@pytest.mark.parametrize(("events_most", "bytes_most"), [(7, 1 << 20), (1_000, 2_000)])
def test_batches_are_bounded(log, target, monkeypatch, events_most, bytes_most):
    """By events and by bytes, so that neither memory nor the client's queue grows."""
    monkeypatch.setattr("mnemoscope.audit.stream.source.BATCH", events_most)
    monkeypatch.setattr("mnemoscope.audit.stream.source.BATCH_BYTES", bytes_most)

    shipped = ship_all(log, target)

    assert [each.seq for each in events(target)] == list(range(shipped.size))
    assert max(target.batches) <= 8


def test_a_log_that_was_put_back_is_not_shipped(log, target):
    """Its copy has more than it: what comes would be another event of the same number."""
    ship_all(log, target)
    target.resume_at = lambda _origin: 10_000

    with pytest.raises(AuditError, match="put back"):
        ship_all(log, target)


@pytest.mark.parametrize(("first", "last"), [(20, 20), (255, 260)])
def test_events_that_are_missing_in_the_log_are_found(path, log, target, first, last):
    """A copy with a hole would say that the copy was changed."""
    with closing(sqlite3.connect(path)) as connection, tampering.unguarded(connection):
        connection.execute("DELETE FROM audit_event WHERE seq BETWEEN ? AND ?", (first, last))

    with pytest.raises(AuditError, match=f"events {first} to {last} are missing"):
        ship_all(log, target)
