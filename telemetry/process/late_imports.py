"""
The turn to import a library on a thread of ours.

Libraries whose modules import one another in a ring (requests, OpenTelemetry) may only be imported
by one thread at a time: where two enter such a ring at different ends, Python hands out a module
without its names rather than wait for ever. Sinks import their library on a thread of their own,
with the first event, and checks of health on others, at the same time.
"""

from __future__ import annotations

from .fork_lock import ForkLock

LATE_IMPORTS = ForkLock()
"""
Held while a thread of ours imports what may not be imported yet.

No other lock is taken inside: variables of the environment are applied before.
"""
