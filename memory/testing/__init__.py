"""
For tests of your code: a scope without network or files, and stores that misbehave on demand.

And for tests of an adapter or a sink of your own: the contracts that ours are held to.

Example:
    >>> with scope_for_tests() as (scope, sink):
    ...     memory = scope.mem0(my_memory)
    ...     with breaking(memory, "search", ConnectionError):
    ...         assert my_agent(memory).answers()
    ...     scope.flush()
    ...     assert sink.events[-1].status == "degraded"
"""

from __future__ import annotations

from .adapter_trial import AdapterCase
from .adapters import check_adapter
from .broken_store import breaking
from .capture import CapturingSink, scope_for_tests
from .contracts import assert_contract
from .golden import GoldenTrace
from .isolation import check_isolation
from .sinks import SINK_CHECKS, check_sink
from .toxic import Strike, Toxic
from .toxics import Toxics

__all__ = [
    "SINK_CHECKS",
    "AdapterCase",
    "CapturingSink",
    "GoldenTrace",
    "Strike",
    "Toxic",
    "Toxics",
    "assert_contract",
    "breaking",
    "check_adapter",
    "check_isolation",
    "check_sink",
    "scope_for_tests",
]
