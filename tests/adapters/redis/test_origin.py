"""What `Origin` sifts of the answers of redisvl's indexes, on a real Redis."""

from __future__ import annotations

import pytest

from tests.kit.origin_recalls import check_origin
from tests.kit.redis_cases import VECTOR, redis_case


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize(
    ("storage", "vector"), [("hash", VECTOR), ("json", [1.0, 0.1])], ids=["hash", "json"]
)
def test_origin_is_asked_of_each_recall(storage, vector, redis_server):
    """Redis's own answers, and what is read in pages, cannot be sifted."""
    case = redis_case(lambda: redis_server.index(storage), vector=vector)
    check_origin(case, refused=("search", "batch_search", "paginate"))
