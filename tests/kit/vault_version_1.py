"""A vault as version 1 made it, in SQL: its format must be read for ever."""

from __future__ import annotations

import secrets
import sqlite3

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from mnemoscope.memory.api import Subject
from mnemoscope.telemetry.event.subject import SubjectKeys

_SCHEMA = """
    CREATE TABLE vault_key (subject TEXT PRIMARY KEY, wrapped BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE vault_entry (
        subject TEXT NOT NULL, pseudonym TEXT NOT NULL, sealed BLOB NOT NULL,
        PRIMARY KEY (subject, pseudonym)
    ) WITHOUT ROWID;
    PRAGMA application_id = 0x6D6E7631;
    PRAGMA user_version = 1;
"""


def make(path, rows):
    """
    Make a vault of version 1.

    Args:
        path: The file.
        rows: Secret (hexadecimal), customer, tenant, and originals by pseudonym.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(0o600)
    with sqlite3.connect(path) as connection:
        connection.executescript(_SCHEMA)
        for secret, customer, tenant, originals in rows:
            _add(connection, SubjectKeys(bytes.fromhex(secret)), customer, tenant, originals)
    connection.close()


def _add(connection, keys, customer, tenant, originals):
    subject, key = Subject(customer, tenant=tenant, keys=keys).hashed("vault/subject"), bytes(32)
    wrapped = _sealed(keys.key("vault"), key, "key", subject)
    connection.execute("INSERT INTO vault_key VALUES (?, ?)", (subject, wrapped))
    for pseudonym, original in originals.items():
        sealed = _sealed(key, original.encode(), "entry", subject, pseudonym)
        connection.execute("INSERT INTO vault_entry VALUES (?, ?, ?)", (subject, pseudonym, sealed))


def _sealed(key, plain, *parts):
    encoded = [each.encode() for each in ("mnemoscope/vault", *parts)]
    bound_to = b"".join(len(each).to_bytes(4, "big") + each for each in encoded)
    nonce = secrets.token_bytes(12)
    return nonce + AESGCM(key).encrypt(nonce, plain, bound_to)
