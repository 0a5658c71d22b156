"""Chroma in a folder and on a server, held to the contract; in memory it is one of all cases."""

from __future__ import annotations

import pytest

from mnemoscope.memory.testing import check_adapter
from tests.kit.chroma_cases import chroma_case, folder_client, new_collection
from tests.kit.origin_recalls import check_origin

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("unhurried")]


def test_a_collection_in_a_folder_keeps_the_contract(tmp_path):
    """All that `check_adapter` asks of an adapter, of an embedded engine and its files."""
    client = folder_client(tmp_path)
    check_adapter(chroma_case(lambda: new_collection(client)))


def test_a_collection_of_a_server_keeps_the_contract(chroma_server):
    """The same, over HTTP."""
    client = chroma_server.client()
    check_adapter(chroma_case(lambda: new_collection(client)))


def test_an_asynchronous_collection_keeps_the_contract(chroma_server):
    """The same, of an ``AsyncCollection``."""
    check_adapter(chroma_case(chroma_server.async_collection))


def test_origin_is_asked_of_each_recall_of_an_asynchronous_collection(chroma_server):
    """All but the count."""
    check_origin(chroma_case(chroma_server.async_collection), refused=("count",))
