"""A witness on the loopback: C2SP tlog-witness, for the logs that it is told of."""

from __future__ import annotations

import base64
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

from tests.kit.merkle_proofs import verify_consistency
from tests.kit.posted import answering_posts

NAME = "witness.example/w1"


class LoopbackWitness:
    """
    What it has seen of each log, and its key.

    Args:
        seed: Of its key, 32 bytes.

    Attributes:
        url: Its submission prefix.
        verifier_key: Its key.
        logs: Verifier keys by origin.
        seen: Size and root by origin.
        time_s: The time that it signs with.
    """

    def __init__(self, seed: bytes) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        public = b"\x04" + self._key.public_key().public_bytes_raw()
        self._key_id = sha256(NAME.encode() + b"\n" + public).digest()[:4]
        encoded = base64.b64encode(public).decode()
        self.verifier_key = f"{NAME}+{self._key_id.hex()}+{encoded}"
        self.url = ""
        self.logs: dict[str, str] = {}
        self.seen: dict[str, tuple[int, bytes]] = {}
        self.time_s = 1_790_000_000

    def learn(self, database: Path) -> str:
        """Learn the key of the log in *database*, and return the log's name."""
        with closing(sqlite3.connect(database)) as connection:
            ((key,),) = connection.execute("SELECT verifier_key FROM audit_key")
        origin = str(key).partition("+")[0]
        self.logs[origin] = key
        return origin

    def answer(self, body: str) -> tuple[int, str]:
        """Return status and text of the answer to ``add-checkpoint``."""
        head, _, note = body.partition("\n\n")
        old, *proof = head.split("\n")
        text, _, lines = note.rpartition("\n\n")
        origin, length, encoded, *_ = text.split("\n")
        size, root = int(length), base64.b64decode(encoded)
        if origin not in self.logs:
            return 404, ""
        if not _is_signed(f"{text}\n", lines, self.logs[origin]):
            return 403, ""
        known, before = self.seen.get(origin, (0, b""))
        if old != f"old {known}" or (known == size and before != root):
            return 409, f"{known}\n"
        path = [base64.b64decode(each) for each in proof]
        if 0 < known < size and not verify_consistency(known, size, path, before, root):
            return 422, ""
        self.seen[origin] = size, root
        return 200, self._line(f"{text}\n")

    def _line(self, text: str) -> str:
        message = f"cosignature/v1\ntime {self.time_s}\n{text}".encode()
        signature = self.time_s.to_bytes(8) + self._key.sign(message)
        return f"\N{EM DASH} {NAME} {base64.b64encode(self._key_id + signature).decode()}\n"


def _is_signed(text: str, lines: str, verifier_key: str) -> bool:
    name, _, public = verifier_key.split("+", 2)
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public)[1:])
    for line in lines.splitlines():
        _, signer, signature = line.split(" ")
        try:
            key.verify(base64.b64decode(signature)[4:], text.encode())
        except InvalidSignature:
            continue
        return signer == name
    return False


@contextmanager
def loopback_witness(seed: bytes = b"w" * 32) -> Iterator[LoopbackWitness]:
    """Run a witness for as long as the body runs."""
    witness = LoopbackWitness(seed)

    def answer(path: str, _kind: str, body: bytes) -> tuple[int, bytes]:
        if path != "/w/add-checkpoint":
            return 404, b""
        status, said = witness.answer(body.decode())
        return status, said.encode()

    with answering_posts(answer) as address:
        witness.url = f"{address}/w"
        yield witness
