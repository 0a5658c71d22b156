"""``mnemoscope audit partition``."""

from __future__ import annotations

from rich.console import Console

from ..exit_codes import INCOMPLETE, CommandError, say
from ..options import AuditUrl


def partition(audit_url: AuditUrl = None) -> None:
    """
    Partition the tables of an audit trail in PostgreSQL, while others write.

    No row is moved. Run it as the owner of the tables, and again if it was broken off. A trail that
    was begun with this version has partitions already. Exits with 3 if it could not be done.
    """
    from ....audit.database.errors import AuditError
    from ..scope import open_trail

    log = open_trail(audit_url, needs_key=False)
    try:
        with Console(stderr=True).status("reading the tables once"):
            # Of several shards, one that has no event yet is made with partitions.
            for each in log.shards:
                if each is log or each.tables.database.exists():
                    each.tables.database.partition()
    except AuditError as exc:
        raise CommandError(" ".join(str(exc).split()), INCOMPLETE) from exc
    say("partitioned")
