"""No shape of a method or of a call goes past the guard: every method of every adapter's table."""

from __future__ import annotations

import pytest
from mem0 import AsyncMemoryClient

from mnemoscope.adapters.langgraph.checkpoint import adapter as checkpoint
from mnemoscope.adapters.langgraph.store import adapter as store
from mnemoscope.adapters.mem0.hosted_methods import HOSTED_METHODS
from mnemoscope.adapters.mem0.methods import METHODS as MEM0
from mnemoscope.adapters.qdrant.methods import METHODS as QDRANT
from tests.kit.adapter_cases import hosted_account
from tests.kit.call_shapes import CELLS, KINDS, SHAPES, TENANCIES, WAYS, breaches, methods_of
from tests.kit.patience import UNHURRIED

TABLES = {"mem0": MEM0, "mem0-hosted": HOSTED_METHODS, "qdrant": QDRANT,
          "store": store.METHODS, "checkpoint": checkpoint.METHODS}  # fmt: skip


@pytest.mark.long_but_each(5)
@pytest.mark.filterwarnings("ignore:`recreate_collection` method is deprecated")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", KINDS)
def test_no_shape_goes_past_the_guard(name, shape, monkeypatch):
    """Content is redacted, one event is told, and what is another customer's is refused."""
    monkeypatch.setattr(AsyncMemoryClient, "_validate_api_key", hosted_account)
    for variable, seconds in UNHURRIED.items():
        monkeypatch.setenv(variable, seconds)

    found = [
        breach
        for way in WAYS
        for tenancy in TENANCIES
        for breach in breaches(KINDS[name], shape, way, tenancy)
    ]

    assert found == []


def test_the_shapes_are_tried_with_every_method_of_every_table():
    """6,888 cells: 164 methods, 7 shapes, 3 ways to call them, tenancy enforced or not."""
    tried = {name: {each.removeprefix("a") if name.endswith("async") else each
                    for each in methods_of(kind)} for name, kind in KINDS.items()}  # fmt: skip
    expected = {
        name: {each.removeprefix("a") if name.endswith("async") else each for each in table}
        for table_name, table in TABLES.items()
        for name in (f"{table_name}-sync", f"{table_name}-async")
    }

    assert tried == expected
    assert sum(map(len, tried.values())) * CELLS == 6_888
