"""
Check an export of an AI agent's memory, or the receipt of an erasure: that nothing was changed.

    python3 verify.py                          the folder in which this file lies
    python3 verify.py export.zip               an export that was not unpacked
    python3 verify.py export.zip --key KEY     and that KEY signed it

Needs nothing but Python 3.8 or newer, and no network. It checks that

1. every file is the one that was listed when the export was made, and none is missing or new;
2. that list (manifest.json) and the checkpoint of the log are signed by one key (RFC 8032);
3. every event stands in the log under that checkpoint (Merkle proofs, RFC 9162), and what was
   asked or written is what was sealed then;
4. events.jsonl and accesses.csv, or a receipt, say what the sealed events say, and nothing else.

It cannot show that nothing was left out, nor whose key it is: compare the key that it prints with
the one that the sender has published.

Exit codes: 0 in order; 1 changed; 2 in order, but the log declares that it lost events; 3 in order,
but incomplete; 4 wrong usage.
"""

from __future__ import annotations

import argparse
import base64
import errno
import hmac
import json
import sys
import zipfile
from functools import partial
from hashlib import sha256
from pathlib import Path

from .ed25519 import is_signed
from .statements import ACCESS_COLUMNS, access_lines, csv_lines, event_document, event_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO, Any

    Files = dict[str, Callable[[], IO[bytes]]]

OK, CHANGED, LOSS, INCOMPLETE, USAGE = 0, 1, 2, 3, 4
ERASED = "privacy.erase.completed"
SIGNED = frozenset({"manifest.json", "manifest.note"})
_LONGEST_LINE = 1 << 28
_BLOCK = 1 << 20


# C2SP signed-note.


def opened_note(note: bytes, key: str) -> list[str]:
    """
    Return the lines of a signed note.

    Raises:
        ValueError: *key* did not sign it.
    """
    name, key_hash, encoded = key.split("+", 2)
    public = _unbase64(encoded)
    # The hash in a key is for finding it: one that does not belong to its key is refused.
    expected = sha256(name.encode() + b"\n" + public).hexdigest()[:8]
    text, _, tail = note.decode().rpartition("\n\n")
    for line in tail.split("\n")[:-1]:
        dash, signer, signature = line.split(" ")
        blob = _unbase64(signature)
        is_ours = dash == "\u2014" and signer == name and blob[:4].hex() == key_hash == expected
        if is_ours and is_signed(f"{text}\n".encode(), blob[4:], public[1:]):
            return text.split("\n")
    raise ValueError("it is not signed by the key")


def _unbase64(text: str) -> bytes:
    # Python's decoder ignores the unused bits of the last letter: two texts would be one value, and
    # a changed byte would pass.
    data = base64.b64decode(text, validate=True)
    if base64.b64encode(data).decode() != text:
        raise ValueError("not base64 as it is written")
    return data


# RFC 9162 section 2.1.3.2.


def is_included(leaf: bytes, index: int, size: int, path: list[bytes], root: bytes) -> bool:
    """Return whether *path* proves that *leaf* is the *index*-th of *size* under *root*."""
    place, last, found = index, size - 1, leaf
    for sibling in path:
        if last == 0:
            return False
        if place & 1 or place == last:
            found = sha256(b"\x01" + sibling + found).digest()
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            found = sha256(b"\x01" + found + sibling).digest()
        place, last = place >> 1, last >> 1
    return 0 <= index < size and last == 0 and found == root


# The check.


class ChangedError(Exception):
    """Something is not as it was."""


class BundleReport:
    """
    The findings of a check of one bundle.

    Attributes:
        key: The verifier key by which the bundle is signed; empty if it is not.
        size: Events in the whole log, under the checkpoint.
        events: How many of them are in the bundle; of how many the detail is *withheld*.
        complete: Whether every store answered, and the operator stated what it has to.
        lacking: What is missing, a line each.
        losses: Events that the log declares as lost.
        erasure: What the event that ended an erasure says of it, in a receipt.
        problem: What is wrong, in a line.
    """

    def __init__(self) -> None:
        self.erasure: Any = None
        self.key = ""
        self.files = self.size = self.events = self.withheld = self.losses = 0
        self.complete = True
        self.lacking = ["not every store answered: see manifest.json"]
        self.problem: str | None = None

    @property
    def code(self) -> int:
        """The exit code."""
        if self.problem:
            return CHANGED
        return INCOMPLETE if not self.complete else LOSS if self.losses else OK

    def verdict(self) -> str:
        """Return one line for a person."""
        if self.problem:
            return f"CHANGED: {self.problem}"
        found = f"{self.files} files and {self.events:,} events are as they were recorded"
        if not self.complete:
            return f"INCOMPLETE: {found}, but {'; '.join(self.lacking)}"
        if self.losses:
            return f"LOSS DECLARED: {found}; the log lost {self.losses:,} events and says so"
        return f"OK: {found}"


def files_of(path: Path) -> Files:
    """
    Return what opens each file of the bundle at *path*: a folder, or an archive.

    Raises:
        ChangedError: It is neither, or a file is in it twice.
    """
    if path.is_dir():
        found = [each for each in path.iterdir() if each.is_file()]
        return {each.name: partial(_opened_file, each) for each in found}
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile:
        raise ChangedError("it is damaged, or no export") from None
    # Programs differ in which of two they unpack: the one that was checked might not be the one
    # that is read.
    if len(set(archive.namelist())) != len(archive.namelist()):
        raise ChangedError("a file is in it twice")
    return {name: partial(archive.open, name) for name in archive.namelist()}


def _opened_file(path: Path) -> IO[bytes]:
    return path.open("rb")


def check(
    path: Path, key: str | None = None, progress: Callable[[int], object] = lambda _done: None
) -> BundleReport:
    """
    Check the bundle at *path*, whatever lies there.

    Args:
        path: A folder, or an archive.
        key: The verifier key that must have signed it. None: the one that it names.
        progress: Called with the number of events checked since.
    """
    report = BundleReport()
    try:
        _check(path, key, progress, report)
    except ChangedError as exc:
        report.problem = str(exc)
    except OSError as exc:
        # A changed archive may say that a file begins before the archive does.
        if exc.errno != errno.EINVAL:
            raise
        report.problem = "it is damaged, or no export"
    except Exception as exc:  # noqa: BLE001 - a change can break anything
        report.problem = f"it is damaged, or no export ({type(exc).__name__})"
    return report


def _check(path: Path, key: str | None, progress: Any, report: BundleReport) -> None:
    files = files_of(path)
    manifest, root = _check_signatures(files, key, report)
    hashes = _check_files(files, manifest, report)
    said = _check_events(files, root, progress, report)
    for name, digest in said.items():
        if name in hashes and hashes[name] != digest:
            raise ChangedError(f"{name} does not say what the sealed events say")
    if report.erasure != manifest.get("erasure"):
        raise ChangedError("the receipt does not say what the sealed event of the erasure says")
    listed = {each["path"]: each.get("n", report.events) for each in manifest["files"]}
    if not report.events == manifest["counts"]["events"] == listed["events.jsonl"]:
        raise ChangedError("the number of events is not the one that was listed")


def _check_signatures(files: Files, key: str | None, report: BundleReport) -> tuple[Any, bytes]:
    raw = _whole(files, "manifest.json")
    manifest = json.loads(raw)
    log = manifest["log"]
    key = str(key or log["verifier_key"])
    if _opened(files, "manifest.note", key)[1:] != [f"sha256 {sha256(raw).hexdigest()}"]:
        raise ChangedError("manifest.json is not the one that was signed")
    lines = _opened(files, "checkpoint.note", key)
    if lines[:3] != [log["origin"], str(log["size"]), log["root"]]:
        raise ChangedError("checkpoint.note is not the one that manifest.json names")
    report.key, report.size = key, int(lines[1])
    report.complete = manifest["complete"] is True
    report.lacking = manifest.get("incomplete") or report.lacking
    report.losses = sum(each["count"] for each in manifest["loss"])
    return manifest, _unbase64(lines[2])


def _opened(files: Files, name: str, key: str) -> list[str]:
    try:
        return opened_note(_whole(files, name), key)
    except ValueError:
        raise ChangedError(f"{name} is not signed by the key {key}") from None


def _check_files(files: Files, manifest: Any, report: BundleReport) -> dict[str, str]:
    listed = {each["path"]: each["sha256"] for each in manifest["files"]}
    report.files = len(files)
    for name in sorted(set(files) - set(listed) - SIGNED):
        raise ChangedError(f"{name} was not in it when it was signed")
    for name, expected in listed.items():
        if name not in files:
            raise ChangedError(f"{name} is missing")
        digest = sha256()
        with files[name]() as file:
            for block in iter(partial(file.read, _BLOCK), b""):
                digest.update(block)
        if digest.hexdigest() != expected:
            raise ChangedError(f"{name} was changed")
    return listed


def _check_events(files: Files, root: bytes, progress: Any, report: BundleReport) -> dict[str, str]:
    """Check every proof, and return the hashes of the files that say what is proved."""
    events, accesses = sha256(), sha256(csv_lines([list(ACCESS_COLUMNS)]))
    with files["proofs.jsonl"]() as lines:
        # A line without an end would be read into memory as a whole.
        for line in iter(partial(lines.readline, _LONGEST_LINE), b""):
            document = _checked(json.loads(line), root, report)
            events.update(event_line(document))
            accesses.update(access_lines(document))
            report.events += 1
            progress(1)
    return {"events.jsonl": events.hexdigest(), "accesses.csv": accesses.hexdigest()}


def _checked(proof: Any, root: bytes, report: BundleReport) -> dict[str, Any]:
    raw = _unbase64(proof["header"])
    header, seq = json.loads(raw), proof["seq"]
    if header["operation"] == ERASED:
        report.erasure = header["data"]
    path = [_unbase64(each) for each in proof["path"]]
    leaf = sha256(b"\x00" + raw).digest()
    # The number is inside of what is sealed, too: a proof cannot be moved to another event.
    if header["seq"] != seq or not is_included(leaf, seq, report.size, path, root):
        raise ChangedError(f"event {seq} is not the one that was recorded")
    if proof["detail"] is None:
        report.withheld += proof["withheld"] is not None
        return event_document(header, None, proof["withheld"], proof.get("stated"))
    detail = _unbase64(proof["detail"])
    # Salted: from a plain hash in the header a short detail could be guessed after its erasure.
    if hmac.new(_unbase64(proof["salt"]), detail, "sha256").hexdigest() != header["detail_commit"]:
        raise ChangedError(f"the detail of event {seq} is not the one that was recorded")
    return event_document(header, json.loads(detail), proof["withheld"], proof.get("stated"))


def _whole(files: Files, name: str) -> bytes:
    if name not in files:
        raise ChangedError(f"{name} is missing")
    with files[name]() as file:
        return bytes(file.read(_LONGEST_LINE))


def main(arguments: list[str]) -> int:
    """Check what the command line names, say what was found, and return the exit code."""
    parser = argparse.ArgumentParser(description="Check an export of an AI agent's memory.")
    parser.add_argument("bundle", nargs="?", type=Path, default=Path(__file__).resolve().parent)
    parser.add_argument("--key", help="the verifier key that must have signed it")
    try:
        given = parser.parse_args(arguments)
    except SystemExit as exc:
        return USAGE if exc.code else OK
    if not given.bundle.exists():
        print(f"there is no {given.bundle}", file=sys.stderr)  # noqa: T201 - how it answers
        return USAGE
    report = check(given.bundle, given.key)
    print(f"{report.verdict()}\nsigned by {report.key or 'nobody'}")  # noqa: T201 - likewise
    return report.code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
