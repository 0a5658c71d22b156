"""Chroma and PGVector, held to the contract: the store in memory is a case of all adapters."""

from __future__ import annotations

import pytest

from mnemoscope.memory.testing import check_adapter
from tests.kit.vector_store_cases import chroma_case, pgvector_case

COLOURS = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


@pytest.mark.long
@COLOURS
def test_chroma_in_a_folder_keeps_the_contract(is_async, tmp_path):
    """All that `check_adapter` asks of an adapter, of an embedded engine and its files."""
    check_adapter(chroma_case(tmp_path, is_async=is_async))


@pytest.mark.long
def test_pgvector_keeps_the_contract(postgres):
    """The same, of a real PostgreSQL."""
    check_adapter(pgvector_case(postgres.new_database))
