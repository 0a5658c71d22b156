"""How much each method deletes: their tables say so, since the audit trail knows no names."""

from __future__ import annotations

from langgraph.store.base import PutOp
from qdrant_client import models

from mnemoscope.adapters.langgraph.checkpoint import adapter as checkpoint
from mnemoscope.adapters.langgraph.store import adapter as store
from mnemoscope.adapters.langgraph.store.addresses import Addresses
from mnemoscope.adapters.mem0.hosted_methods import HOSTED_METHODS
from mnemoscope.adapters.mem0.methods import METHODS as MEMORY
from mnemoscope.adapters.qdrant.methods import METHODS, table
from mnemoscope.memory import vault_door as vault
from mnemoscope.memory.api import Deletes, OperationClass
from mnemoscope.memory.privacy.engine.redactor import build_redactor
from mnemoscope.telemetry.event.subject import SubjectKeys

TABLES = {
    "mem0": MEMORY,
    "mem0 hosted": HOSTED_METHODS,
    "qdrant": METHODS,
    "store": store.METHODS,
    "checkpointer": checkpoint.METHODS,
    "vault": {"reveal": vault._REVEAL, "forget": vault._FORGET},
}


def test_methods_that_forget_say_how_much_and_no_others_do():
    """Without it a deletion that lists no memories leaves all of them in doubt."""
    wrong = [
        f"{name}: {method.name}"
        for name, methods in TABLES.items()
        for method in methods.values()
        if (method.op_class is OperationClass.FORGET) != (method.deletes is not None)
    ]

    assert wrong == []


def test_whatever_drops_a_store_deletes_everything():
    """The methods that take all memories, whoever they belong to, are these."""
    found = {
        (name, method.name)
        for name, methods in TABLES.items()
        for method in methods.values()
        if method.deletes is Deletes.EVERYTHING
    }

    assert found == {
        ("mem0", "reset"),
        ("mem0 hosted", "reset"),
        ("qdrant", "delete_collection"),
        ("qdrant", "recreate_collection"),
    }


def test_a_batch_deletes_what_its_operations_do():
    """Its row is chosen by what is in it."""
    redactor = build_redactor(keys=SubjectKeys(bytes(32)))
    rows = store.rows_of(Addresses(bytes(32), redactor))
    batch, update = rows["batch"], table(None)["batch_update_points"]
    delete = models.DeleteOperation(delete=models.PointIdsList(points=[1]))
    upsert = models.UpsertOperation(upsert=models.PointsList(points=[]))

    assert batch({"ops": [PutOp(("a",), "k", None)]}).deletes is Deletes.IDS
    assert batch({"ops": [PutOp(("a",), "k", {})]}).deletes is None
    assert update({"update_operations": [delete]}).deletes is Deletes.IDS
    assert update({"update_operations": [upsert]}).deletes is None
