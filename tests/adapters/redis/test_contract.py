"""redisvl's indexes on a real Redis, held to the contract."""

from __future__ import annotations

import pytest

from mnemoscope.memory.testing import check_adapter
from tests.kit.redis_cases import VECTOR, redis_case

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("unhurried")]
STORAGES = pytest.mark.parametrize(
    ("storage", "vector"), [("hash", VECTOR), ("json", [1.0, 0.1])], ids=["hash", "json"]
)


@STORAGES
def test_an_index_keeps_the_contract(storage, vector, redis_server):
    """All that `check_adapter` asks of an adapter, of hashes and of JSON."""
    check_adapter(redis_case(lambda: redis_server.index(storage), vector=vector))


@STORAGES
def test_an_asynchronous_index_keeps_the_contract(storage, vector, redis_server):
    """The same, of an ``AsyncSearchIndex``."""
    check_adapter(redis_case(lambda: redis_server.async_index(storage), vector=vector))
