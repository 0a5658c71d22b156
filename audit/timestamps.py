"""
Time stamps: a checkpoint with an authority's word that it was there at a time. RFC 3161.

An authority remembers no log, as a witness does. So what it stamped is kept where the log is not,
and the log is held against it. Nobody has a stamp made afterwards, the key of the log or not. It
stands behind the signatures of a note, in a line of its own, and is of all that is before it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final

from .database.errors import AuditError, TamperedError
from .log import AuditLog
from .shards.super_checkpoint import differences
from .verification.report import FindingKind, Verification
from .verification.tree import size_of
from .witness import TIMEOUT_S, WitnessError, post

_NAME: Final = "rfc3161"
_LINE: Final = f"\N{EM DASH} {_NAME} "
_HASH: Final = hashlib.sha256(f"{_NAME}\n".encode() + b"\xff" + _NAME.encode()).digest()[:4]
"""C2SP signed-note: of a signature of a kind that is not in its list."""


def stamp(log: AuditLog, url: str, roots: bytes, *, kept: str = "") -> str:
    """
    Sign *log* as it is, and return the note with the time stamp of an authority.

    Args:
        log: Which.
        url: Where the authority is asked.
        roots: The certificates that it is believed by, PEM.
        kept: What this returned before. The log has to continue it.

    Raises:
        TamperedError: The log does not continue what was kept: it was put back, or written again.
        WitnessError: The authority cannot be asked or believed, or what was kept has no stamp.
        AuditError: The log cannot be read or signed.
        ValueError: The URL or a certificate is not one.
    """
    client, believed = _load(roots)
    if kept and not [*stamps(kept, roots)]:
        raise WitnessError("the checkpoint that was kept has no time stamp: move it away")
    with log.reading() as snapshot:
        for _kind, wrong in differences(snapshot, [kept.split("\n")[:3]] if kept else ()):
            raise TamperedError(f"the log {wrong}")
    note = log.checkpoint_now()
    request = client.TimestampRequestBuilder().data(note.encode()).build()
    kind = "application/timestamp-query"
    status, answer = post(url, request.as_bytes(), TIMEOUT_S, whom="the authority", kind=kind)
    if status != HTTPStatus.OK:
        raise WitnessError(f"the authority answers with status {status}")
    _stamped_at(note, answer, client, client.VerifierBuilder(roots=believed, nonce=request.nonce))
    return f"{note}{_LINE}{base64.b64encode(_HASH + answer).decode()}\n"


def stamps(note: str, roots: bytes) -> Iterator[datetime]:
    """Check the time stamps of *note*, and yield when they were made; raises as `stamp`."""
    lines = note.splitlines(keepends=True)
    for place, line in enumerate(lines):
        if line.startswith(_LINE):
            client, believed = _load(roots)
            answer = base64.b64decode(line.removeprefix(_LINE) + "==")[len(_HASH) :]
            verifier = client.VerifierBuilder(roots=believed)
            yield _stamped_at("".join(lines[:place]), answer, client, verifier)


def check_stamps(notes: Iterable[str], roots: bytes, report: Verification) -> None:
    """Add to *report* what time stamps say of checkpoints from elsewhere, and what is wrong."""
    for note in notes:
        size = f"the checkpoint of {size_of(note):,} events"
        try:
            times = [*stamps(note, roots)] if roots else []
        except TamperedError as exc:
            report.tampered(exc.what)
        except AuditError as exc:
            report.find(FindingKind.UNVERIFIABLE, str(exc))
        else:
            report.stamped += [f"{size}, at {at:%Y-%m-%d %H:%M:%S} UTC" for at in times]
            if roots and not times:
                report.find(FindingKind.UNVERIFIABLE, f"{size} has no time stamp")
            elif _LINE in note and not roots:
                report.find(FindingKind.UNVERIFIABLE, f"{size} is stamped: check it with --roots")


def _load(roots: bytes) -> tuple[Any, list[Any]]:
    try:
        import rfc3161_client  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        install = "pip install 'mnemoscope[timestamps]'"
        raise WitnessError(f"time stamps need rfc3161-client: {install}") from None
    from cryptography.x509 import load_pem_x509_certificates  # noqa: PLC0415 - 20 ms

    try:
        return rfc3161_client, [*load_pem_x509_certificates(roots)]
    except ValueError:
        raise ValueError("the roots are no certificates, PEM") from None


def _stamped_at(stamped: str, answer: bytes, client: Any, verifier: Any) -> datetime:
    text = stamped.encode()
    at: datetime
    try:
        decoded = client.decode_timestamp_response(answer)
        imprint, at = decoded.tst_info.message_imprint.message, decoded.tst_info.gen_time
    except ValueError:
        raise WitnessError("the time stamp cannot be read, or was not granted") from None
    if imprint not in {hashlib.new(each, text).digest() for each in ("sha256", "sha384", "sha512")}:
        raise TamperedError("the time stamp of a checkpoint is of something else")
    try:
        verifier.build().verify_message(decoded, text)
    except client.VerificationError:
        raise WitnessError("the time stamp is by nobody whom the roots know") from None
    return at
