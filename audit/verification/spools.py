"""The check of what events of earlier releases say of spools, whose records they numbered."""

from __future__ import annotations

from collections.abc import Mapping

from ..record.spool_numbers import SpoolAccount, count_of
from .report import FindingKind, Verification


def check_spools(noted: Mapping[str, SpoolAccount], report: Verification, *, is_all: bool) -> None:
    """
    Find records that are gone from a spool.

    Args:
        noted: What the log says of each spool.
        report: Takes what is found.
        is_all: Whether *noted* has everything that was ever said.
    """
    for name, account in noted.items():
        lost = count_of(account.lost())
        if lost:
            what = f"{lost:,} records are gone from the spool {name}, and were never in the log"
            report.find(FindingKind.LOSS, what)
        missing = count_of(account.unaccounted(from_one=is_all))
        if missing:
            what = f"{missing:,} records of the spool {name} are not in the log (yet)"
            report.find(FindingKind.UNVERIFIABLE, f"{what}: they wait on its machine, or are gone")
