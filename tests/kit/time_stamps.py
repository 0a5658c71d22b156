"""A time stamp authority on the loopback: `openssl ts` behind HTTP."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kit.posted import answering_posts

_NEW = "req -x509 -newkey rsa:2048 -nodes -keyout {0}.key -out {0}.pem -days 3650 -subj /CN={0}"
_CONFIGURATION = """
[tsa]
default_tsa = authority
[authority]
serial = serial
crypto_device = builtin
signer_cert = tsa.pem
signer_key = tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256, sha384, sha512
"""


class LoopbackAuthority:
    """
    A time stamp authority with a root of its own.

    Args:
        folder: Its keys and certificates.

    Attributes:
        url: Where it is asked.
        roots: The file with the certificate that it is believed by.
        status: What it answers with.
        asked: How often it was asked.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.url = ""
        self.roots = folder / "root.pem"
        self.status = 200
        self.asked = 0
        folder.mkdir(exist_ok=True)
        (folder / "serial").write_text("01")
        (folder / "tsa.cnf").write_text(_CONFIGURATION)
        (folder / "extensions").write_text("extendedKeyUsage=critical,timeStamping\n")
        self.openssl(_NEW.format("root"))
        self.openssl("req -newkey rsa:2048 -nodes -keyout tsa.key -out tsa.csr -subj /CN=tsa")
        self.openssl(
            "x509 -req -in tsa.csr -CA root.pem -CAkey root.key -CAcreateserial -out tsa.pem "
            "-days 3650 -extfile extensions"
        )

    def openssl(self, words: str) -> str:
        """Run ``openssl`` in its folder, and return what it says."""
        command = ["openssl", *words.split()]
        found = subprocess.run(command, cwd=self._folder, capture_output=True, check=True)
        return (found.stdout + found.stderr).decode()

    def answer(self, query: bytes) -> bytes:
        """Return the answer to a query, DER."""
        self.asked += 1
        (self._folder / "query.tsq").write_bytes(query)
        self.openssl("ts -reply -config tsa.cnf -queryfile query.tsq -out answer.tsr")
        return (self._folder / "answer.tsr").read_bytes()


@contextmanager
def loopback_authority(folder: Path) -> Iterator[LoopbackAuthority]:
    """Run an authority for as long as the body runs; skips where there is no ``openssl``."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command")
    authority = LoopbackAuthority(folder)

    def answer(_path: str, kind: str, body: bytes) -> tuple[int, bytes]:
        is_query = kind == "application/timestamp-query"
        said = authority.answer(body) if is_query else b""
        return (authority.status if is_query else 400), said

    with answering_posts(answer) as address:
        authority.url = f"{address}/"
        yield authority
