"""The check of spools: that each record that was put into one is in the log, or there still."""

from __future__ import annotations

from collections.abc import Mapping

from ..record.spool_numbers import SpoolAccount, count_of
from ..sink.spool import SpoolStanding
from .report import FindingKind, Verification


def check_spools(
    noted: Mapping[str, SpoolAccount],
    standing: SpoolStanding | None,
    report: Verification,
    *,
    is_all: bool,
) -> None:
    """
    Find records that are gone from a spool.

    Args:
        noted: What the log says of each spool.
        standing: What the spool of this machine holds, if that can be told.
        report: Takes what is found.
        is_all: Whether *noted* has everything that was ever said.
    """
    accounts = dict(noted)
    if standing is not None:
        name, end = standing.end
        account = accounts.pop(name, SpoolAccount())
        report.waiting = count_of(standing.waiting)
        _tell_lost(report, name, account)
        missing = count_of(account.unaccounted(end, standing.waiting, from_one=is_all))
        if missing:
            what = f"{missing:,} records of the spool {name} are neither in it nor in the log"
            report.find(FindingKind.LOSS, what)
        if end < account.noted:
            what = f"the ledger of the spool {name} is not as the log knows it: it was put back"
            report.find(FindingKind.UNVERIFIABLE, what)
    for name, account in accounts.items():
        _tell_lost(report, name, account)
        missing = count_of(account.unaccounted(from_one=is_all))
        if missing:
            what = f"{missing:,} records of the spool {name} are not in the log (yet)"
            report.find(FindingKind.UNVERIFIABLE, f"{what}: they wait on its machine, or are gone")


def _tell_lost(report: Verification, spool: str, account: SpoolAccount) -> None:
    lost = count_of(account.lost())
    if lost:
        what = f"{lost:,} records are gone from the spool {spool}, and were never in the log"
        report.find(FindingKind.LOSS, what)
