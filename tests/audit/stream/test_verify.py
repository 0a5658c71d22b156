"""The verification of a copy from what is in it alone."""

from __future__ import annotations

import sqlite3
from base64 import b64encode
from contextlib import closing
from hashlib import sha256

import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from mnemoscope.audit import AuditLog
from mnemoscope.audit.stream import verify_copy
from tests.kit import tampering
from tests.kit.elapsed_days import live
from tests.kit.memory_copy import MemoryCopy, ship_all
from tests.kit.verified import verify

NOW_NS = 1_800_000_000_000_000_000


@pytest.fixture
def copy(log):
    copy = MemoryCopy()
    ship_all(log, copy)
    return copy


@pytest.fixture
def verified():
    """Return what verifies a copy at the time at which it was written."""

    def verified(copy, **options):
        return verify_copy(copy, NOW_NS // 1_000, **options)

    return verified


def events(copy):
    """Return the events of a copy."""
    return [each for each in copy.kept if each.kind == "event"]


def without(copy, start, stop):
    """Return a copy without events ``[start, stop)``."""
    return MemoryCopy(
        [each for each in copy.kept if each.kind != "event" or not start <= each.seq < stop]
    )


def signer(log):
    """Return the key that signed a log."""
    with log.reading() as snapshot:
        return snapshot.execute("SELECT verifier_key FROM audit_key").fetchone()[0]


def test_a_copy_is_verified_as_its_source_is(log, copy, verified):
    """Size, root, events, declared losses, and the ends of writers."""
    source, found = verify(log).as_document(), verified(copy).as_document()

    for name in ("origin", "size", "root", "signed", "events", "gaps", "writers", "removals"):
        assert found[name] == source[name], name
    assert found["findings"] == source["findings"]
    assert found["checkpoints"]["checked"] == found["checkpoints"]["valid"] > 0


def test_neither_order_nor_repetition_matters(copy, verified):
    """Partitions are read one after the other, and what was sent twice is there twice."""
    mixed = MemoryCopy([*reversed(copy.kept), *copy.kept[10:60]])

    assert verified(mixed).as_document() == verified(copy).as_document()


def test_an_event_that_is_twice_and_differs_is_found(copy, verified):
    """Whichever of the two is the true one."""
    other = events(copy)[7]
    forged = other._replace(header=other.header.replace(b'"nested":false', b'"nested":true'))

    found = verified(MemoryCopy([*copy.kept, forged]))

    assert "event 7 is there 2 times, and differs" in found.findings["tampered"]


def test_a_record_of_another_log_is_found(copy, verified):
    """Wherever in the copy it stands."""
    foreign = events(copy)[3]._replace(origin="mnemoscope/0000000000000000")

    found = verified(MemoryCopy([*copy.kept, foreign]))

    assert found.findings["tampered"] == ["1 records are of another log, or of none"]


NOTHING = [{each: None} for each in ("origin", "kind", "seq", "header", "leaf")]
OTHER_TYPES = [{"kind": ["event"]}, {"seq": "5"}, {"seq": 5.0}, {"header": "{}"}, {"header": [1]}]


@pytest.mark.parametrize(
    "change", [{"kind": "other"}, {"seq": -1}, {"seq": 1 << 80}, *NOTHING, *OTHER_TYPES]
)
def test_a_record_that_is_none_of_a_log_is_found(copy, verified, change):
    """Added to a copy that has everything: whatever is in it is proved, or found."""
    found = verified(MemoryCopy([*copy.kept, events(copy)[3]._replace(**change)]))

    assert found.findings["tampered"] == ["1 records are of another log, or of none"]


@pytest.mark.parametrize(("start", "stop"), [(20, 21), (100, 200), (259, 260)])
def test_missing_events_are_found_where_a_checkpoint_covers_them(copy, verified, start, stop):
    """A checkpoint is sent behind what it covers."""
    found = verified(without(copy, start, stop))

    assert found.findings["tampered"] == [f"events {start} to {stop - 1} are missing"]


def test_the_missing_end_of_a_signed_copy_is_found(copy, verified):
    """Its last checkpoint tells how far it was."""
    assert verified(without(copy, 200, 1_000)).state == "tampered"


def test_events_that_are_on_their_way_are_no_tampering(copy, verified):
    """No checkpoint covers them yet: some partitions are ahead of others."""
    last = max(each.seq for each in events(copy))
    kept = [each for each in copy.kept if each.kind == "event" and each.seq != last - 3]

    found = verified(MemoryCopy(kept))

    assert found.state == "unverifiable"
    said = found.findings["unverifiable"]
    assert f"events {last - 3} to {last - 3} are not there yet: still being written" in said


def test_a_copy_whose_beginning_has_expired_is_verified_from_there_on(log, copy, verified):
    """The chain leads back to its first event from the last one, which a signature covers."""
    late = without(copy, 0, 50)
    late.expired = 50

    found = verified(late, key=signer(log))

    assert found.state == "loss"
    assert found.findings["loss"][0] == "50 events are gone, the copy has expired"
    assert found.valid_events == found.events == found.size - 50
    assert found.signed == found.size
    assert not found.findings["unverifiable"]


def test_a_changed_event_before_the_first_proof_is_found(log, copy, verified):
    """Of a copy that begins late, from its first event on."""
    late = without(copy, 0, 50)
    late.expired = 50
    place = next(n for n, each in enumerate(late.kept) if each.seq == 50)
    changed = late.kept[place].header.replace(b'"v":1', b'"v":2')
    late.kept[place] = late.kept[place]._replace(header=changed)

    assert verified(late, key=signer(log)).state == "tampered"


def test_a_changed_last_event_of_a_copy_that_begins_late_is_found(log, copy, verified):
    """With a hash to fit: nothing follows it, and it is in no tree but that of its proof."""
    late = without(copy, 0, 50)
    late.expired = 50
    last = max(each.seq for each in events(copy))
    late.kept = [each for each in late.kept if each.kind == "event" or each.seq > last]
    place = next(n for n, each in enumerate(late.kept) if each.seq == last)
    header = late.kept[place].header.replace(b'"nested":false', b'"nested":true')
    leaf = sha256(b"\0" + header).digest()
    late.kept[place] = late.kept[place]._replace(header=header, leaf=leaf)

    assert verified(late, key=signer(log)).state == "tampered"


def test_a_copy_that_begins_late_needs_the_key(copy, verified):
    """The event that names it is gone."""
    late = without(copy, 0, 50)
    late.expired = 50

    found = verified(late)

    assert found.state == "unverifiable"
    assert any("--key" in each for each in found.findings["unverifiable"])


def test_a_beginning_that_nothing_explains_is_said(log, copy, verified):
    """A copy that did not expire."""
    found = verified(without(copy, 0, 50), key=signer(log))

    assert found.state == "unverifiable"
    assert found.findings["unverifiable"] == ["events 0 to 49 are not in the copy: it begins later"]


def test_a_compacted_copy_is_told_for_what_it_is(copy, verified):
    """Events are gone everywhere; of what is left some have no proof."""
    kept = [each for each in copy.kept if each.kind != "event" or each.seq % 5 or each.seq == 260]
    compacted = MemoryCopy(kept)
    compacted.compacted = True

    found = verified(compacted)

    assert found.state == "loss" or "--key" in found.findings["unverifiable"][0]
    assert "the copy is compacted" in found.findings["loss"][0]
    assert not found.findings["tampered"]


def test_another_key_signed_nothing_here(log, copy, verified):
    """Whoever writes the log anew can name it the same, and its key in it."""
    name = signer(log).partition("+")[0]
    public = b"\x01" + Ed25519PrivateKey.generate().public_key().public_bytes_raw()
    key_hash = sha256(name.encode() + b"\n" + public).digest()[:4].hex()
    key = f"{name}+{key_hash}+{b64encode(public).decode()}"

    assert verified(copy, key=signer(log)).state == "loss"
    found = verified(copy, key=key)
    assert found.state == "unverifiable"
    assert found.signed == 0


def test_a_checkpoint_that_is_kept_elsewhere_shows_that_the_copy_is_behind_or_cut(
    log, copy, verified
):
    """Cut back to an earlier checkpoint it fits together, and so does one that lags behind."""
    note = log.checkpoint_now()
    noted = [each.seq for each in copy.kept if each.kind == "checkpoint"]
    assert len(noted) >= 1
    first = 120
    cut = MemoryCopy([each for each in copy.kept if each.kind == "event" and each.seq < first])

    assert verified(copy, checkpoints=[note]).state == verified(copy).state
    found = verified(cut, checkpoints=[note])
    assert found.state == "unverifiable"
    assert any("it is behind, or was cut back" in each for each in found.findings["unverifiable"])


def test_a_checkpoint_of_another_log_is_no_sign_of_a_copy_that_is_behind(
    log, copy, verified, tmp_path, subject_keys, event_factory
):
    """It is of more events, and of none of these."""
    other = AuditLog(tmp_path / "other.db", subject_keys)
    other.append([event_factory(writer_seq=each) for each in range(1, 2_000)])

    assert verified(copy, checkpoints=[other.checkpoint_now()]).state == "tampered"
    other.close()


@pytest.fixture
def pruned(tmp_path, subject_keys, event_factory):
    """Return a log of a year whose first months retention has removed, and a copy from before."""
    now_s = [NOW_NS // 10**9]
    path = tmp_path / "year.db"
    with closing(
        AuditLog(path, subject_keys, clock_ns=lambda: now_s[0] * 10**9, retention_days=200)
    ) as log:
        for _month in range(12):
            live(log, now_s, 30)
            log.append([event_factory() for _ in range(300)])
        before = MemoryCopy()
        ship_all(log, before)
        assert log.prune() > 256
        log.checkpoint_now()
        yield log, before


def test_what_retention_removed_before_is_no_loss_of_the_copy(pruned, verified):
    """The log says it itself, in an event that the copy has; the rest is proved from there on."""
    log, _before = pruned
    copy = MemoryCopy()
    shipped = ship_all(log, copy)
    found = verified(copy, key=signer(log))

    assert shipped.removed == copy.kept[0].seq > 256
    assert found.findings["tampered"] == found.findings["loss"] == []
    assert not any("begins later" in each for each in found.findings["unverifiable"])
    assert found.valid_events == found.events == found.size - shipped.removed
    assert found.signed == found.size
    assert found.removals[0]["name"] == "retention.pruned"


def test_a_copy_keeps_what_retention_removes_later(pruned, verified):
    """The original is aged out, and the copy is whole."""
    log, before = pruned
    ship_all(log, before)

    found = verified(before)
    assert found.valid_events == found.events == found.size == found.signed


@pytest.mark.long
def test_each_changed_byte_of_a_copy_is_found(tmp_path, subject_keys, event_factory, verified):
    """Of every header, hash, number and name; keys and encrypted details are said not to be."""
    with closing(AuditLog(tmp_path / "small.db", subject_keys, clock_ns=lambda: NOW_NS)) as log:
        log.append([event_factory(), event_factory()])
        log.checkpoint_now()
        copy = MemoryCopy()
        ship_all(log, copy)
    assert verified(copy).state == "ok"

    unseen = []
    for place, record in enumerate(copy.kept):
        for changed in flipped(record):
            kept = [*copy.kept[:place], changed, *copy.kept[place + 1 :]]
            if verified(MemoryCopy(kept)).state != "tampered":
                unseen.append(changed)
    assert unseen == []


def flipped(record):
    """Yield a record with each of its bytes changed, one at a time."""
    for name in ("header", "leaf"):
        data = getattr(record, name)
        for place in range(len(data)):
            bit = 1 << (place % 8)
            yield record._replace(
                **{name: data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :]}
            )
    yield record._replace(origin=record.origin[:-1] + "x")
    yield record._replace(kind="events")
    yield record._replace(seq=record.seq + 1)
    yield record._replace(seq=-1)
    yield record._replace(seq=1 << 80)


def test_nothing_is_not_verified(verified):
    """An empty copy vouches for nothing."""
    found = verified(MemoryCopy())

    assert found.state == "unverifiable"
    assert found.findings["unverifiable"] == ["there is no event in the copy"]


def test_a_source_that_was_changed_shows_in_the_copy(path, log, verified):
    """A flipped byte is shipped as it is."""
    with closing(sqlite3.connect(path)) as connection, tampering.unguarded(connection):
        (header,) = connection.execute("SELECT header FROM audit_event WHERE seq = 30").fetchone()
        known = orjson.loads(header)
        known["duration_us"] += 1
        connection.execute(
            "UPDATE audit_event SET header = ? WHERE seq = 30", (orjson.dumps(known),)
        )
    changed = MemoryCopy()
    ship_all(log, changed)

    assert verified(changed).state == verify(log).state == "tampered"
