"""Our own adapters, held to the contract that other people's are held to."""

from __future__ import annotations

import pytest
from mem0 import AsyncMemoryClient

from mnemoscope.memory.testing import check_adapter
from tests.kit.adapter_cases import CASES, hosted_account


@pytest.mark.long_but(
    "mem0-sync",
    "qdrant-async",
    "langgraph.store-sync",
    "langgraph.checkpoint-async",
    "langchain.vectors-sync",
)
@pytest.mark.filterwarnings("ignore:`recreate_collection` method is deprecated")
@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize("name", CASES)
def test_an_adapter_keeps_the_contract(name, monkeypatch):
    """All that `check_adapter` asks of an adapter, for each kind of client and of method."""
    monkeypatch.setattr(AsyncMemoryClient, "_validate_api_key", hosted_account)

    check_adapter(CASES[name]())
