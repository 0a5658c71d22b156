"""The audit trail knows no client by name: what it needs of one is in events and in providers."""

from __future__ import annotations

import re
from pathlib import Path

import mnemoscope.audit
from mnemoscope.adapters.langgraph.checkpoint import adapter as checkpoint
from mnemoscope.adapters.mem0.hosted_methods import HOSTED_METHODS
from mnemoscope.adapters.mem0.methods import METHODS as MEMORY
from mnemoscope.adapters.qdrant.methods import METHODS

FOLDER = Path(mnemoscope.audit.__file__).parent
CLIENT = re.compile("mem0|qdrant|langgraph", re.IGNORECASE)


def test_no_module_of_audit_names_a_client():
    """A new store touches its own folder, and no file of this package."""
    found = [path.name for path in sorted(FOLDER.rglob("*.py")) if CLIENT.search(path.read_text())]

    assert found == []


def test_no_module_of_audit_names_a_method_that_deletes():
    """How much a method deletes is in its event, and not told by its name."""
    tables = (MEMORY, HOSTED_METHODS, METHODS, checkpoint.METHODS)
    methods = [each for table in tables for each in table.values()]
    # Names of one word, such as reset, are words of their own as well.
    names = {each.name for each in methods if each.deletes and "_" in each.name}
    found = {
        f"{path.name}: {name}"
        for path in sorted(FOLDER.rglob("*.py"))
        for name in names & set(re.findall(r"\w+", path.read_text()))
    }

    assert names
    assert found == set()
