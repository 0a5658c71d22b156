"""The declaration of records that are gone from a spool, and did not get into the log."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from ..database.database import WriteConnection
from ..record.spool_numbers import MISSING, TAKEN, SpoolAccount, count_of, note_spool
from ..store.tables import LogTables
from .spool import Spool

_NOTED = """
    SELECT operation, header FROM audit_event
    WHERE kind = 'log' AND operation IN (?, ?) ORDER BY seq
"""


class Checked(NamedTuple):
    """
    The outcome of a look at a spool.

    Attributes:
        missing: Records that are declared as gone now.
        waiting: Records that are in it.
    """

    missing: int
    waiting: int


def declare_missing(tables: LogTables, spool: Spool) -> Checked:
    """
    Declare the records of *spool* that are neither in it nor in the log.

    Raises:
        AuditError: They are not declared.
    """
    # Before the log: what is taken out in between is in the log.
    standing = spool.standing()
    if standing is None:
        return Checked(0, 0)
    name, end = standing.end
    with tables.writing() as (connection, head):
        account = _account_of(connection, name)
        missing = account.unaccounted(end, standing.waiting, from_one=not head.first_seq)
        if missing:
            tables.note(connection, head, MISSING, {"spool": name, "numbers": missing})
    return Checked(count_of(missing), count_of(standing.waiting))


def _account_of(connection: WriteConnection, spool: str) -> SpoolAccount:
    accounts = {spool: SpoolAccount()}
    found: list[Any] = connection.execute(_NOTED, (TAKEN, MISSING)).fetchall()
    for name, header in found:
        note_spool(accounts, name, orjson.loads(bytes(header))["data"])
    return accounts[spool]
