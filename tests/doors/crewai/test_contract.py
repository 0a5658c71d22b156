"""CrewAI's memory storages, held to the contract of adapters."""

from __future__ import annotations

import uuid
import warnings
from importlib.metadata import entry_points

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the modules that it replaces as it is imported
    from crewai.memory.storage.lancedb_storage import LanceDBStorage
    from crewai.memory.types import MemoryRecord

from mnemoscope.memory.testing import AdapterCase, check_adapter
from tests.kit.origin_recalls import check_origin

(ENTRY,) = entry_points(group="mnemoscope.store_adapters", name="crewai")
IDS = ["11111111-0000-4000-8000-000000000001", "11111111-0000-4000-8000-000000000002"]
HERE = "/customers/c-42"
VECTOR = [0.1, 0.2, 0.3]


def record(text, own=IDS[0]):
    """Return a record about the customer."""
    return MemoryRecord(
        id=own, content=text, scope=f"{HERE}/notes", metadata={"note": text}, embedding=VECTOR,
        categories=[text], source=text,
    )  # fmt: skip


CALLS = {
    "save": lambda text: {"records": [record(text), record(text, IDS[1])]},
    "asave": lambda text: {"records": [record(text, str(uuid.uuid4()))]},
    "search": lambda text: {
        "query_embedding": VECTOR, "scope_prefix": HERE, "metadata_filter": {"note": text},
    },
    "asearch": lambda text: {"query_embedding": VECTOR, "scope_prefix": HERE, "limit": 3},
    "list_records": lambda text: {"scope_prefix": HERE},
    "get_record": lambda text: {"record_id": IDS[0]},
    "get_scope_info": lambda text: {"scope": HERE},
    "list_scopes": lambda text: {"parent": HERE},
    "list_categories": lambda text: {"scope_prefix": HERE},
    "count": lambda text: {"scope_prefix": HERE},
    "update": lambda text: {"record": record(text)},
    "touch_records": lambda text: {"record_ids": IDS},
    "adelete": lambda text: {"record_ids": IDS[1:], "scope_prefix": HERE},
    "delete": lambda text: {"record_ids": IDS[:1], "scope_prefix": HERE},
    "reset": lambda text: {"scope_prefix": HERE},
}  # fmt: skip


NOT_SIFTED = ("get_scope_info", "list_scopes", "list_categories", "count")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def case_in(folder):
    """Return the case of CrewAI's default storage, of a new one each time."""
    return AdapterCase(
        adapter=ENTRY.load(),
        make_client=lambda: LanceDBStorage(folder / str(uuid.uuid4()), compact_every=0),
        calls=CALLS,
        not_called=dict.fromkeys(("flush_to_central", "close"), "another storage's"),
        options={"owner_scope": "/customers"},
    )


def test_lancedb_in_a_folder_keeps_the_contract(tmp_path):
    """All that `check_adapter` asks of an adapter, of CrewAI's default storage."""
    check_adapter(case_in(tmp_path))


def test_origin_is_asked_of_each_recall(tmp_path):
    """Names of scopes and categories, and sums, cannot be sifted."""
    check_origin(case_in(tmp_path), refused=NOT_SIFTED)
