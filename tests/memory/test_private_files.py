"""Whatever file this library makes is readable for its owner alone."""

from __future__ import annotations

import os
from contextlib import contextmanager

import pytest
from langgraph.store.memory import InMemoryStore

from mnemoscope.adapters.customer_requests.erase import erase, leave_receipt
from mnemoscope.adapters.customer_requests.export import export_from_scope, new_request
from mnemoscope.adapters.customer_requests.requested_person import person_in_scope
from mnemoscope.audit.store.person_lookup import CustomerQuery
from mnemoscope.memory import Mnemoscope, context, load_settings
from tests.kit.patience import GIVE_UP_S


@contextmanager
def open_to_all():
    """Have files be made as a program says, and no umask correct it."""
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)


def modes_in(folder):
    """Return what others than its owner may do with each file."""
    return {each: each.stat().st_mode & 0o077 for each in folder.rglob("*") if each.is_file()}


@pytest.mark.parametrize("relay", [False, True], ids=["own sinks", "relay"])
def test_every_file_is_its_owners(tmp_path, relay):
    """Trail, spool, roll, key, journal, vault, log, relay, export and receipt."""
    names = {each: tmp_path / each for each in ("journal", "vault", "log_file", "audit_spool")}
    if relay:
        names["relay"] = tmp_path / "relay"
    settings = load_settings(
        **names,
        audit_url=f"sqlite:///{tmp_path}/audit.db",
        audit_pseudonym_key="ab" * 32,
        pii_model="none",
        pii_operators="*=pseudonym",
        log_file_bytes=600,
        sinks="logs,audit",
    )
    with open_to_all():
        scope = Mnemoscope(settings)
        store = scope.store(InMemoryStore(), customer_at=1)
        with context(tenant="acme", customer="c-42"):
            for number in range(5):
                store.put(("notes", "c-42"), f"k-{number}", {"text": "write to ada@example.com"})
        scope.flush(GIVE_UP_S)
        if not relay:
            person = person_in_scope(scope, CustomerQuery(customer="c-42"))
            export_from_scope(scope, person, request=new_request(), path=tmp_path / "export.zip")
            erased = erase(scope, person)
            leave_receipt(scope, erased, tmp_path / "receipt.zip", person=person)
        files = modes_in(tmp_path)
        scope.close()
        files |= modes_in(tmp_path)

    assert len(files) > 5
    assert {each.name: oct(mode) for each, mode in files.items() if mode} == {}
