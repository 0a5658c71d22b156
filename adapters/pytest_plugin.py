"""
Fixtures for tests of agents with guarded memory, found by pytest's entry point.

Nothing is imported before a test asks for a fixture: the plugin is loaded in every suite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ..memory import Mnemoscope
    from ..memory.testing import CapturingSink, Toxics


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the plugin's section to ``pytest --help``."""
    group = parser.getgroup("mnemoscope", "memory of agents: memory_scope, toxics, golden_memory")
    group.addoption(
        "--toxic-seed",
        type=int,
        default=0,
        help="Seed of the fixture toxics: which calls are struck. Default: 0.",
    )


@pytest.fixture
def memory_scope() -> Iterator[tuple[Mnemoscope, CapturingSink]]:
    """A scope without network or files, and the sink that has its events, flushed."""
    from ..memory.testing import scope_for_tests  # noqa: PLC0415 - see above

    # What a machine has to load at first is no outage: a golden trace would keep it for one.
    with scope_for_tests(deadline_recall_s=60.0, deadline_remember_s=60.0) as made:
        yield made


@pytest.fixture
def toxics(pytestconfig: pytest.Config) -> Callable[..., Toxics]:
    """`mnemoscope.memory.testing.Toxics`, seeded by ``--toxic-seed``."""
    from ..memory.testing import Toxics  # noqa: PLC0415 - see above

    seed: int = pytestconfig.getoption("toxic_seed") or 0
    return partial(Toxics, seed=seed)


@pytest.fixture
def golden_memory(
    memory_scope: tuple[Mnemoscope, CapturingSink], snapshot: Any
) -> Callable[..., None]:
    """Hold what ran in `memory_scope` so far against the test's snapshot, or one run of it."""
    from ..memory.testing.golden import GoldenTrace  # noqa: PLC0415 - see above
    from ..memory.testing.snapshots import check_trace  # noqa: PLC0415 - see above

    scope, sink = memory_scope

    def check(run: str | None = None) -> None:
        __tracebackhide__ = True
        scope.flush()
        check_trace(GoldenTrace.of(e for e in sink.events if run in {None, e.run}), snapshot)

    return check


@pytest.fixture
def check_isolation() -> Callable[..., None]:
    """`mnemoscope.memory.testing.check_isolation`: two tenants, and each read of a store."""
    from ..memory.testing import check_isolation as check  # noqa: PLC0415 - see above

    return check
