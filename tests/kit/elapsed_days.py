"""A log through which time passes: with an event now and then, as in one that is used."""

from __future__ import annotations

DAY_S = 86_400


def live(log, now_s, days, *, every_days=30):
    """Have *days* pass by the clock in ``now_s[0]``, with an event of each log every so many."""
    until_s = now_s[0] + days * DAY_S
    while now_s[0] < until_s:
        now_s[0] = min(now_s[0] + every_days * DAY_S, until_s)
        first, *others = log.shards
        for each in (first, *(its for its in others if its.tables.database.exists())):
            each.append_log_event("verify.ran", {"result": "ok"})
