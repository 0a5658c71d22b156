"""The vault: what pseudonyms stand for, kept for one customer and shown to nobody else."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from textwrap import dedent

import pytest

from mnemoscope.memory import (
    ConfigurationError,
    Mnemoscope,
    ScopeError,
    VaultError,
    context,
    load_settings,
)
from mnemoscope.memory.api import Faults, Method, Operation, OperationClass, Status
from mnemoscope.memory.privacy.vault.vault import MAX_ORIGINAL_CHARS, MAX_QUEUED, Vault
from mnemoscope.memory.privacy.vault.vault_keys import VaultCustomer
from mnemoscope.memory.privacy.vault.vault_tables import VaultEntry
from mnemoscope.telemetry.event.subject import SubjectKeys
from tests.kit.children import exit_code_of_child, somebody_inside
from tests.kit.patience import GIVE_UP_S
from tests.kit.vault_host import KEY, MAIL, NAME, SECRET, Host


@pytest.fixture
def host(tmp_path):
    """Return a host; it is closed in the end."""
    made = Host(tmp_path / "vault" / "names.db")
    yield made
    made.scope.close(GIVE_UP_S)


def test_the_customer_is_shown_their_own_words_again(host):
    """What was written as pseudonyms comes back as it was said."""
    stored = host.write()

    assert NAME not in stored
    assert MAIL not in stored
    assert host.reveal(stored).startswith(f"My name is {NAME}, mail {MAIL}, ")


def test_the_context_says_whose(host):
    """As it does everywhere else."""
    stored = host.write()
    with context(customer="c-1", tenant="acme"):
        shown = host.scope.reveal(stored)

    assert NAME in shown


@pytest.mark.parametrize(
    ("customer", "tenant"), [("c-2", "acme"), ("c-1", "other"), ("c-1", None), ("C-1", "acme")]
)
def test_nobody_else_is_shown_them(host, customer, tenant):
    """Another customer, or the same id of another tenant: the pseudonyms stay."""
    stored = host.write()

    assert host.reveal(stored, customer=customer, tenant=tenant) == stored


def test_a_secret_is_never_kept(host):
    """Nobody needs to be shown a password again."""
    stored = host.write()

    assert "<SECRET_" in stored
    assert "<SECRET_" in host.reveal(stored)


def test_unknown_pseudonyms_stay(host):
    """Made up, cut off, or replaced while there was no vault."""
    host.write()
    text = "<PERSON_0123456789abcdef> <PERSON_012> <PERSON> < > <_0123456789abcdef>"

    assert host.reveal(text) == text


def test_a_cached_redaction_is_kept_for_each_customer(host):
    """The same words of two customers are replaced once and kept twice."""
    first, second = host.write(), host.write(customer="c-2")

    assert first == second
    assert NAME in host.reveal(first)
    assert NAME in host.reveal(first, customer="c-2")


def test_identifiers_in_values_are_kept(host):
    """They are pseudonyms whatever the operators say."""
    tagging = Host(host.path, pii_operators="*=tag")
    method = Method(
        name="put",
        operation="create_memory",
        op_class=OperationClass.REMEMBER,
        redact=lambda given, redaction: redaction.value(given),
    )
    with context(customer="c-1", tenant="acme"):
        stored = tagging.parts.guards.guard("store").call(
            Operation(method, {"owner": MAIL}), lambda given: given["owner"]
        )
        shown = tagging.scope.reveal(stored)
    tagging.scope.close(GIVE_UP_S)

    assert stored.startswith("<EMAIL_ADDRESS_")
    assert shown == MAIL


def test_nothing_raw_is_at_rest(host):
    """Neither names nor ids, in no file; the same scan does find what is in the open."""
    host.write()
    host.scope.flush(GIVE_UP_S)
    found = host.bytes_at_rest()
    (host.path.parent / "control").write_text(NAME)

    assert len(found) > 1_000
    for raw in (NAME, "Jennifer", "jennifer", "Smith", MAIL, SECRET, "c-1", "acme"):
        assert raw.encode() not in found
        assert raw.encode("utf-16-le") not in found
    assert NAME.encode() in host.bytes_at_rest()


def test_nothing_raw_is_shown(host, caplog):
    """Not in a repr, an event, a log line."""
    host.write()
    host.reveal(host.write())
    host.scope.flush(GIVE_UP_S)
    vault = host.parts.vault
    customer_vault = vault.for_customer("c-1", "acme")
    entry = VaultEntry(
        subject="c-1", person="c-1", pseudonym="<PERSON_0123456789abcdef>", original=NAME
    )
    shown = (vault, vault.file, customer_vault, entry, host.scope.vault, *host.sink.events)
    told = " ".join(map(repr, shown))

    for raw in (NAME, MAIL, "c-1", KEY):
        assert raw not in told
        assert raw not in caplog.text


def test_only_the_owner_may_read_the_file(host):
    """And the folder that was made for it."""
    assert stat.S_IMODE(host.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(host.path.parent.stat().st_mode) == 0o700


def test_forgetting_shreds_the_key_and_the_rows(host):
    """What was in the file is in no file any more, and nothing is shown; others' is untouched."""
    stored = host.write()
    host.write(customer="c-2")
    host.scope.flush(GIVE_UP_S)
    subject = host.parts.vault.hashes_of(VaultCustomer("c-1", "acme"))[0]
    with sqlite3.connect(host.path) as connection:
        query = "SELECT {} FROM {} WHERE subject = ?"
        blobs = [
            row[0]
            for column, table in (("wrapped", "vault_key"), ("sealed", "vault_entry"))
            for row in connection.execute(query.format(column, table), (subject,))
        ]
    connection.close()
    before = host.bytes_at_rest()
    erased = host.scope.vault.forget("c-1", "acme")
    after = host.bytes_at_rest()

    assert erased == 2
    assert len(blobs) == 3
    assert all(blob in before and blob not in after for blob in blobs)
    assert subject.encode() in before
    assert subject.encode() not in after
    assert host.reveal(stored) == stored
    assert NAME in host.reveal(stored, customer="c-2")


def test_what_waits_is_forgotten_too(host, monkeypatch):
    """A name that was replaced just before is not written just after."""
    file = host.parts.vault.file
    store = file.store

    def slowly(*given):
        time.sleep(0.2)  # a disk
        return store(*given)

    monkeypatch.setattr(file, "store", slowly)
    stored = host.write()
    host.scope.vault.forget("c-1", "acme")
    host.scope.flush(GIVE_UP_S)

    assert host.reveal(stored) == stored


def test_what_is_said_after_forgetting_is_kept_again(host):
    """The customer is back: with a new key, in spite of what is cached."""
    stored = host.write()
    host.scope.vault.forget("c-1", "acme")
    host.write()

    assert NAME in host.reveal(stored)


def test_forgetting_fails_closed(host):
    """An erasure that did not happen is an error."""
    host.write()
    host.scope.flush(GIVE_UP_S)
    host.path.write_bytes(b"no database at all" * 100)

    with pytest.raises(VaultError, match="DatabaseError: file is not a database"):
        host.scope.vault.forget("c-1", "acme")


def test_a_broken_vault_breaks_nothing_else(host):
    """Writes go on, reveals leave pseudonyms, and both are counted."""
    host.path.write_bytes(b"no database at all" * 100)
    stored = host.write()
    shown = host.reveal(stored)
    outcome = host.scope.last_outcome()

    assert "<PERSON_" in stored
    assert shown == stored
    assert outcome.status is Status.DEGRADED
    assert outcome.neutral
    assert host.parts.faults.counts["vault.keep"] == 2


def test_what_could_not_be_kept_is_kept_when_it_is_met_again(host):
    """A full disk passes."""
    good = host.path.read_bytes()
    host.path.write_bytes(b"no database at all" * 100)
    stored = host.write()
    host.scope.flush(GIVE_UP_S)
    host.path.write_bytes(good)
    before = host.reveal(stored)
    host.write()

    assert NAME not in before
    assert NAME in host.reveal(stored)


def test_a_vault_that_was_removed_is_made_again(host):
    """Nothing is revealed from it, and what comes is kept."""
    stored = host.write()
    host.scope.flush(GIVE_UP_S)
    host.path.unlink()
    before = host.reveal(stored)
    host.write("I am Maria Garcia")
    host.scope.flush(GIVE_UP_S)

    assert before == stored
    assert host.path.exists()


def test_rows_cannot_be_exchanged(host):
    """What is sealed for one customer and pseudonym opens for no other."""
    mine, yours = host.write("My name is Jennifer Smith"), host.write("My name is Maria Garcia")
    host.scope.flush(GIVE_UP_S)
    with sqlite3.connect(host.path) as connection:
        rows = connection.execute("SELECT pseudonym, sealed FROM vault_entry").fetchall()
        swapped = [(rows[1][1], rows[0][0]), (rows[0][1], rows[1][0])]
        connection.executemany("UPDATE vault_entry SET sealed = ? WHERE pseudonym = ?", swapped)
    connection.close()

    assert host.reveal(f"{mine} {yours}") == f"{mine} {yours}"
    assert host.parts.faults.counts["vault.damaged"] == 2


def test_another_secret_opens_nothing(host):
    """The file without the key is of no use."""
    stored = host.write()
    host.scope.flush(GIVE_UP_S)
    other = Host(host.path, audit_pseudonym_key="ff" * 32)
    shown = other.reveal(stored)
    other.scope.close(GIVE_UP_S)

    assert shown == stored


def test_a_later_process_reveals_what_an_earlier_one_kept(host):
    """January and March: all that they share is the file and the key."""
    stored = host.write()
    host.scope.close(GIVE_UP_S)
    later = Host(host.path)
    shown = later.reveal(stored)
    later.scope.close(GIVE_UP_S)

    assert NAME in shown


def test_processes_share_the_file(host, tmp_path):
    """Several at once lose nothing."""
    code = dedent(
        f"""
        import sys
        from pathlib import Path
        from mnemoscope.memory.privacy.vault.vault import Vault
        from mnemoscope.telemetry.process.faults import Faults
        from mnemoscope.telemetry.event.subject import SubjectKeys
        faults = Faults()
        vault = Vault(Path({str(host.path)!r}), keys=SubjectKeys(bytes(32)), faults=faults)
        customer_vault = vault.for_customer("c-1", None)
        for number in range(20):
            customer_vault.store(f"<PERSON_{{int(sys.argv[1]):08x}}{{number:08x}}>", "x", "PERSON")
            vault.flush({GIVE_UP_S})
        assert not faults.counts, faults.counts
        """
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(number)]) for number in range(3)]

    assert [each.wait(GIVE_UP_S) for each in running] == [0, 0, 0]
    with sqlite3.connect(host.path) as connection:
        assert connection.execute("SELECT count(*) FROM vault_entry").fetchone() == (60,)
        assert connection.execute("SELECT count(*) FROM vault_key").fetchone() == (1,)
    connection.close()


def test_it_is_written_at_exit(tmp_path):
    """A process that ends without closing has kept what it replaced."""
    path = tmp_path / "names.db"
    code = dedent(
        f"""
        from pathlib import Path
        from mnemoscope.memory.privacy.vault import vault as module
        from mnemoscope.memory.privacy.vault.vault import Vault
        from mnemoscope.telemetry.process import exit_deadline
        from mnemoscope.telemetry.process.faults import Faults
        from mnemoscope.telemetry.event.subject import SubjectKeys
        module._EXIT_S = exit_deadline.EXIT_DEADLINE_S = {GIVE_UP_S}
        vault = Vault(Path({str(path)!r}), keys=SubjectKeys(bytes(32)), faults=Faults())
        vault.for_customer("c-1", None).store("<PERSON_0123456789abcdef>", "Ada", "PERSON")
        """
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=GIVE_UP_S)
    vault = Vault(path, keys=SubjectKeys(bytes(32)), faults=Faults())
    found = vault.originals(VaultCustomer("c-1"), ["<PERSON_0123456789abcdef>"])

    assert found == {"<PERSON_0123456789abcdef>": "Ada"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_keeps_and_reveals(host):
    """With a thread of its own, while the parent's goes on."""
    stored = host.write()

    def work():
        child = host.write("My name is Maria Garcia")
        return "Maria Garcia" in host.reveal(f"{child} {stored}")

    code = exit_code_of_child(work)
    with context(customer="c-1", tenant="acme"):
        maria = host.parts.guards.redactor.redactor.begin(tenant="acme", known=["c-1"]).text(
            "I am Maria Garcia"
        )

    assert code == 0
    assert NAME in host.reveal(stored)
    assert "Maria Garcia" in host.reveal(maria)


def test_a_fork_in_the_middle_of_a_stuck_write(host, monkeypatch):
    """The child is refused at once, and says why; its parent goes on."""
    stored = host.write()
    file = host.parts.vault.file
    monkeypatch.setattr(file._guard, "patience_s", 0.01)

    def is_refused():
        try:
            file.state()
        except OSError as exc:
            return "was being written when this process was forked" in str(exc)
        return False

    with somebody_inside(file._writing()):
        status = exit_code_of_child(is_refused)

    assert status == 0
    assert NAME in host.reveal(stored)


def test_the_caller_never_waits(host):
    """While another process holds the file, a call takes no longer, and nothing is lost."""
    holder = sqlite3.connect(host.path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    started = time.monotonic()
    stored = host.write()
    seconds = time.monotonic() - started
    holder.execute("ROLLBACK")
    holder.close()

    assert seconds < 0.5
    assert NAME in host.reveal(stored)


def test_what_waits_is_bounded(tmp_path):
    """Beyond the limit it is counted, and stays a pseudonym."""
    faults = Faults()
    vault = Vault(tmp_path / "v.db", keys=SubjectKeys(bytes(32)), faults=faults)
    vault._ensure_thread = lambda: None
    customer_vault = vault.for_customer("c-1", None)
    for number in range(MAX_QUEUED + 3):
        customer_vault.store(f"<PERSON_{number:016x}>", "Ada", "PERSON")
    waiting = vault.waiting
    vault.forked()  # nobody is to wait for them

    assert waiting == MAX_QUEUED
    assert faults.counts["vault.keep"] == 3


def test_what_is_too_long_is_not_kept(host):
    """A finding of pages is no name."""
    host.parts.vault.for_customer("c-1", None).store(
        "<PERSON_0123456789abcdef>", "x" * (MAX_ORIGINAL_CHARS + 1), "PERSON"
    )

    assert host.parts.faults.counts["vault.keep"] == 1


def test_without_a_thread_to_be_had_nothing_fails(host, monkeypatch):
    """It waits until there is one."""
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", _no_thread)
        host.parts.vault.for_customer("c-1", "acme").store(
            "<PERSON_0123456789abcdef>", "Ada", "PERSON"
        )

    assert host.reveal("<PERSON_0123456789abcdef>") == "Ada"


def _no_thread(_self):
    raise RuntimeError("can't start new thread")


def test_a_reveal_is_an_operation_like_any_other(host):
    """One event, which says how many were shown, and for whom."""
    stored = host.write()
    host.reveal(stored)
    host.scope.flush(GIVE_UP_S)
    event = host.sink.events[-1]

    assert (event.store, event.method, event.operation) == ("vault", "reveal", "search_memory")
    assert (event.status, event.hits) == (Status.OK, 2)
    assert event.subject is not None


def test_text_without_pseudonyms_costs_no_call(host):
    """There is nothing to be looked up."""
    assert host.reveal("hello <b>") == "hello <b>"
    host.scope.flush(GIVE_UP_S)
    assert host.sink.events == []


def test_whose_must_be_said(host):
    """Nobody in particular, or everybody, has no pseudonyms."""
    for customer in (None, "", "*"):
        with pytest.raises(ScopeError):
            host.scope.reveal("<PERSON_0123456789abcdef>", customer=customer)
        with pytest.raises(ScopeError):
            host.scope.vault.forget(customer)


def test_enforced_tenancy_shows_nobody_elses(tmp_path):
    """Inside one customer's context another's names are refused."""
    host = Host(tmp_path / "v.db", tenancy="enforce")
    stored = host.write()
    with context(customer="c-2", tenant="acme"):
        with pytest.raises(ScopeError):
            host.scope.reveal(stored, customer="c-1")
        with pytest.raises(ScopeError):
            host.scope.vault.forget("c-1")
    shown = host.reveal(stored)
    host.scope.close(GIVE_UP_S)

    assert NAME in shown


def test_without_a_vault_text_stays(tmp_path):
    """It is opt-in: nothing is kept, revealing changes nothing, erasing says that there is none."""
    host = Host(None, vault=None)
    stored = host.write()
    shown = host.reveal(stored)
    with pytest.raises(ConfigurationError, match="MNEMOSCOPE_VAULT"):
        _ = host.scope.vault
    host.scope.close(GIVE_UP_S)

    assert shown == stored


def test_switched_off_nothing_is_made(tmp_path):
    """Not even the file."""
    scope = Mnemoscope(load_settings(disabled=True, vault=tmp_path / "v.db"))

    assert scope.reveal("<PERSON_0123456789abcdef>") == "<PERSON_0123456789abcdef>"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["open to others", "text", "another database", "folder"])
def test_an_unfit_file_is_refused_when_configured(tmp_path, kind):
    """And left as it is."""
    path = tmp_path / "v.db"
    if kind == "folder":
        path.mkdir(mode=0o700)
    elif kind == "another database":
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE notes (note TEXT)")
        connection.close()
        path.chmod(0o600)
    else:
        path.write_text("some notes " * 100)
        path.chmod(0o644 if kind == "open to others" else 0o600)
    before = None if kind == "folder" else path.read_bytes()

    with pytest.raises(ConfigurationError, match=r"v\.db|directory"):
        Host(path)
    assert before is None or path.read_bytes() == before


def test_the_thread_ends_with_the_scope(host):
    """Nothing is left running."""
    host.write()
    thread = host.parts.vault._thread
    host.scope.close(40)

    assert thread is not None
    assert not thread.is_alive()
