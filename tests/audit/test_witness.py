"""A witness elsewhere: what it says of a trail that was put back, or written again."""

from __future__ import annotations

import base64

import pytest

from mnemoscope.audit import AuditError, AuditLog, Witness, WitnessError, cosign
from tests.kit.witness import loopback_witness


@pytest.fixture
def service():
    with loopback_witness() as service:
        yield service


@pytest.fixture
def witness(service):
    return Witness(service.url, service.verifier_key)


@pytest.fixture
def log(tmp_path, service, event_factory, subject_keys):
    """Return a trail of one event that the witness knows of."""
    log = AuditLog(tmp_path / "audit.db", subject_keys)
    log.append([event_factory(writer_seq=1)])
    log.checkpoint_now()
    service.learn(tmp_path / "audit.db")
    yield log
    log.close()


def claim(note):
    """Return name, size and root of what a note claims."""
    origin, size, root, *_ = note.split("\n")
    return origin, int(size), base64.b64decode(root)


def test_a_witness_signs_what_continues_the_log(log, witness, service, event_factory):
    """The note has both signatures, and the witness has seen all of it."""
    cosign(log, witness)
    log.append([event_factory(writer_seq=2), event_factory(writer_seq=3)])
    note = cosign(log, witness)

    origin, size, root = claim(note)
    assert service.seen == {origin: (size, root)}
    assert [line.split(" ")[1] for line in note.splitlines()[-2:]] == [origin, "witness.example/w1"]


def test_a_log_that_has_not_grown_is_signed_again(log, witness):
    """The same checkpoint, at another time."""
    assert claim(cosign(log, witness)) == claim(cosign(log, witness))


@pytest.mark.parametrize("grows", [True, False])
def test_a_log_that_was_written_again_shows(log, witness, service, event_factory, grows):
    """It is as long as it was, or longer, and continues nothing that the witness has seen."""
    origin, size, _ = claim(cosign(log, witness))
    service.seen[origin] = size, bytes(32)
    if grows:
        log.append([event_factory(writer_seq=2)])

    with pytest.raises(AuditError, match="the witness has seen"):
        cosign(log, witness)


def test_a_witness_that_does_not_know_the_log_is_said(log, witness, service):
    """It is no tampering."""
    service.logs.clear()

    with pytest.raises(WitnessError, match="does not know this log"):
        cosign(log, witness)


def test_a_witness_with_another_key_is_not_believed(log, witness, service):
    """Whoever answers in its place has not its key."""
    with loopback_witness(b"o" * 32) as other, pytest.raises(WitnessError, match="with the key"):
        cosign(log, Witness(service.url, other.verifier_key))


def test_a_key_that_is_none_is_refused(log, witness):
    """Before anything is signed or sent."""
    with pytest.raises(ValueError, match="verifier key"):
        cosign(log, witness._replace(verifier_key="witness.example/w1"))
