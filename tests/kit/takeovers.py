"""Processes of a trail of shards that take over what others have left, when they are told to."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence

from mnemoscope.memory import context
from tests.kit.sharded_trails import ShardedTrail, recaller
from tests.kit.writer_kills import drain_of

_NOWHERE = "sqlite:////proc/nowhere/audit.db"
_SPOOL_BYTES = 1 << 20
"""A file of a spool that its process could not end is as large as it may become."""


def taker(trail: ShardedTrail, shards: int) -> Callable[[], None]:
    """
    Return what a process does that has so many shards, each time it looks for what others left.

    Threads of its own would do the same: the caller sees to it that none is started. Between two
    looks it holds no connection, of which a server has few.
    """
    sinks = trail.sinks(shards)
    drain_of(*sinks)

    def look() -> None:
        for each in sinks:
            each.beat()
        for each in sinks:
            each.log.close()
            each.trail.close()

    return look


class GoneWriter:
    """
    A process in mode ``durable`` whose database is away, so that its spools have all it records.

    It has recalled something for half of *tenants*, and waits.
    """

    def __init__(self, trail: ShardedTrail, shards: int, tenants: Sequence[str]) -> None:
        told, self._tell = os.pipe()
        self._said, saying = os.pipe()
        with warnings.catch_warnings(action="ignore"):  # threads of other tests are not ours
            self._child = os.fork()
        if self._child:
            os.close(told)
            os.close(saying)
            os.read(self._said, 1)
            return
        try:
            os.close(self._tell)
            os.close(self._said)
            settings = {"audit_url": _NOWHERE, "audit_spool_max_bytes": _SPOOL_BYTES}
            recall = recaller(trail.scope(shards, audit_mode="durable", **settings))
            for number, tenant in enumerate(tenants):
                if number == len(tenants) // 2:
                    os.write(saying, b".")
                    os.read(told, 1)
                with context(tenant=tenant, customer="ada"):
                    recall()
        finally:
            os._exit(1)

    def end(self) -> None:
        """Have it recall something for the other half, and be gone."""
        os.close(self._tell)
        os.waitpid(self._child, 0)
        os.close(self._said)
