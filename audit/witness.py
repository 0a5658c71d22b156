"""
Witnesses: a checkpoint countersigned by a service that remembers how far the log had come.

C2SP tlog-witness: the witness is given a checkpoint, with the proof that it continues the one
before, and cosigns it. A log that was put back as a whole, with whatever it was kept with, is older
than its witness knows; one that was rewritten continues nothing that the witness has seen.
"""

from __future__ import annotations

import base64
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from .database.errors import AuditError, TamperedError
from .log import AuditLog
from .proof.merkle import Prover
from .proof.note import parse_checkpoint, verified
from .store.tree import StoredHashes

TIMEOUT_S: Final = 10.0
"""Seconds for each answer of a witness."""

_TURNS: Final = 3
_MOST_BYTES: Final = 65_536


class WitnessError(AuditError):
    """A witness or an authority cannot be asked, or does not know the log."""


class Witness(NamedTuple):
    """
    A witness.

    Attributes:
        url: Its submission prefix.
        verifier_key: Its key, as C2SP signed-note has it.
    """

    url: str
    verifier_key: str


def cosign(log: AuditLog, witness: Witness, *, timeout_s: float = TIMEOUT_S) -> str:
    """
    Sign *log* as it is, have the witness sign that, too, and return the note.

    Raises:
        TamperedError: The witness has seen a newer log, or another one: this was put back, or
            rewritten.
        WitnessError: The witness cannot be asked, does not know the log, or signs with another key.
        AuditError: The log cannot be read or signed.
        ValueError: The URL or the key is not one.
    """
    verified("", witness.verifier_key)  # a key that is none is found before anything is signed
    note = log.checkpoint_now()
    size = parse_checkpoint(note).size
    seen = 0
    with log.reading() as snapshot:
        prover = Prover(StoredHashes(snapshot), size)
        for _ in range(_TURNS):
            to = f"{witness.url.rstrip('/')}/add-checkpoint"
            status, answer = post(to, _body(note, seen, prover), timeout_s)
            said = answer.decode("utf-8", "replace")
            if status != HTTPStatus.CONFLICT:
                return _answered(witness, note, status, said)
            before, seen = seen, _size(said)
            if seen > size:
                raise TamperedError(
                    f"the witness has seen {seen:,} events, and the log has {size:,}: it was put "
                    "back"
                )
            if seen == before:
                break
    raise TamperedError(f"the witness has seen other {seen:,} events than those of the log")


def _answered(witness: Witness, note: str, status: int, said: str) -> str:
    if status == HTTPStatus.UNPROCESSABLE_ENTITY:
        raise TamperedError("the log does not continue what the witness has seen of it")
    if status in {HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}:
        raise WitnessError("the witness does not know this log, or not its key")
    if status != HTTPStatus.OK:
        raise WitnessError(f"the witness answers with status {status}")
    cosigned = note + said
    if not verified(cosigned, witness.verifier_key):
        raise WitnessError("the witness does not sign with the key that was given for it")
    return cosigned


def _body(note: str, seen: int, prover: Prover) -> bytes:
    proof = [] if seen in {0, prover.size} else prover.consistency(seen)
    lines = [f"old {seen}", *(base64.b64encode(each).decode() for each in proof), "", note]
    return "\n".join(lines).encode()


def _size(said: str) -> int:
    size = said.strip()
    if not (size.isascii() and size.isdigit()):
        raise WitnessError("the witness does not say how many events it has seen")
    return int(size)


def post(
    url: str, body: bytes, timeout_s: float, *, whom: str = "the witness", kind: str = "text/plain"
) -> tuple[int, bytes]:
    """
    Return the status and the body of the answer of *whom*. Redirects are not followed.

    Raises:
        WitnessError: It cannot be asked.
        ValueError: The URL is not one.
    """
    import urllib3  # noqa: PLC0415 - for who asks somebody

    if not url.startswith(("https://", "http://")):
        raise ValueError(f"the URL of {whom} begins with https:// or http://")
    how: dict[str, Any] = {"timeout": timeout_s, "retries": False, "preload_content": False}
    with urllib3.PoolManager(headers={"Content-Type": kind}) as pool:
        try:
            answer = pool.request("POST", url, body=body, redirect=False, **how)
            return answer.status, answer.read(_MOST_BYTES)
        except (OSError, urllib3.exceptions.HTTPError) as exc:
            raise WitnessError(f"{whom} cannot be asked ({type(exc).__name__})") from None
