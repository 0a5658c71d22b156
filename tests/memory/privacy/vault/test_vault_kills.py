"""Broken off before any statement, a change of the vault is made or not made, and nothing half."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from mnemoscope.memory import VaultError
from mnemoscope.memory.api import Faults
from mnemoscope.memory.privacy.vault import vault_file
from mnemoscope.memory.privacy.vault.vault import Vault
from mnemoscope.memory.privacy.vault.vault_keys import VaultCustomer
from mnemoscope.telemetry.event.subject import SubjectKeys
from tests.kit.children import exit_code_of_child
from tests.kit.vault_version_1 import make

pytestmark = [pytest.mark.forks_often, pytest.mark.long]

OLD, NEW = "00112233445566778899aabbccddeeff", "ffeeddccbbaa99887766554433221100"
ADA, BOB, EVE = (VaultCustomer(each, "acme") for each in ("ada", "bob", "eve"))
NAMES = {f"<PERSON_{number:016x}>": f"name {number}" for number in range(3)}
MOST = 200
"""Statements of the longest change, and more."""


@dataclass
class Vaults:
    """The same vault again and again: Ada and Bob by version 1, Eve and Ada by the next key."""

    folder: os.PathLike

    def __post_init__(self):
        """Make the first."""
        self.path = self.folder / "first.db"
        make(self.path, [(OLD, each.customer, "acme", NAMES) for each in (ADA, BOB)])
        self.first = self.path.read_bytes()
        self.open(NEW, OLD).file.open()
        for customer in (EVE, ADA):
            self.add(customer, self.open(NEW, OLD))
        self.later = self.path.read_bytes()

    def again(self, content):
        """Begin again with *content*."""
        for each in self.folder.iterdir():
            each.unlink()
        self.path.touch(0o600)
        self.path.write_bytes(content)

    def open(self, key, *previous):
        """Return the vault as a process with these keys has it."""
        keys, *others = (SubjectKeys(bytes.fromhex(each)) for each in (key, *previous))
        return Vault(self.path, keys=keys, previous=others, faults=Faults())

    def add(self, customer, vault):
        """Store the names for *customer*."""
        part = vault.for_customer(customer.customer, customer.tenant)
        for pseudonym, name in NAMES.items():
            part.store(pseudonym, name, "PERSON")
        assert vault.close(10)

    def names_of(self, customer, *keys):
        """Return what is revealed to *customer*."""
        return self.open(*keys).originals(customer, list(NAMES))


@pytest.fixture
def vaults(tmp_path, monkeypatch):
    """Return them, a rotation being a transaction for each customer."""
    monkeypatch.setattr(vault_file, "_REWRAPPED_AT_ONCE", 1)
    folder = tmp_path / "vault"
    folder.mkdir(mode=0o700)
    return Vaults(folder)


class Broken(sqlite3.Connection):
    """A connection that fails at a statement."""

    left = MOST

    def execute(self, *given):
        """Count down."""
        type(self).left -= 1
        if self.left == 0:
            raise sqlite3.OperationalError("disk I/O error")
        return super().execute(*given)


def killed_at(number: int, work: Callable[[], object], monkeypatch) -> bool:
    """Do *work* in a process that dies before its statement *number*. False: it has not so many."""
    connect = sqlite3.connect
    left = [number]

    def count(_statement):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(*given, **named):
        connection = connect(*given, **named)
        connection.set_trace_callback(count)
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", counted)
        code = exit_code_of_child(work)
    assert code in {0, -signal.SIGKILL}
    return code != 0


def failed_at(number: int, work: Callable[[], object], monkeypatch) -> bool:
    """Do *work*, with an error in place of its statement *number*. False: it has not so many."""
    connect = sqlite3.connect
    Broken.left = number
    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, factory=Broken, **k))
        try:
            work()
        except (sqlite3.OperationalError, VaultError):
            return True
    return False


@pytest.fixture(params=["killed", "failed"])
def broken_off(request, monkeypatch):
    """Return how to break *work* off at each statement in turn, beginning with *content* again."""
    break_at = killed_at if request.param == "killed" else failed_at
    if request.param == "killed" and not hasattr(os, "fork"):
        pytest.skip("needs fork")

    def each_time(vaults, content, work):
        for number in range(1, MOST):
            vaults.again(content)
            if not break_at(number, work, monkeypatch):
                assert number > 10  # it was broken off at all
                return
            yield number
        pytest.fail("it has no end")

    return each_time


def test_an_upgrade_that_is_broken_off_is_made_by_the_next(vaults, broken_off):
    """And nothing is lost."""
    for _number in broken_off(vaults, vaults.first, vaults.open(OLD).file.open):
        assert vaults.names_of(ADA, OLD) == NAMES
        assert vaults.open(OLD).forget(BOB) == 3


def test_a_rotation_that_is_broken_off_can_go_on(vaults, broken_off):
    """Until then both keys reveal all, and none is half changed; afterwards the new one does."""
    both = (NEW, OLD)
    for _number in broken_off(vaults, vaults.later, vaults.open(*both).rotate):
        for each in (ADA, BOB, EVE):
            assert vaults.names_of(each, *both) == NAMES
        assert vaults.open(*both).rotate().unreadable == 0
        for each in (ADA, BOB, EVE):
            assert vaults.names_of(each, NEW) == NAMES
        assert vaults.open(NEW).forget(ADA) == 6


def test_a_forget_that_is_broken_off_is_made_or_not_made(vaults, broken_off):
    """All of them is there, or nothing in any file under any key; and it can be made again."""
    both = (NEW, OLD)
    for _number in broken_off(vaults, vaults.later, lambda: vaults.open(*both).forget(ADA)):
        left = [vaults.names_of(ADA, *keys) for keys in (both, (OLD,), (NEW,))]
        assert left in ([NAMES, NAMES, NAMES], [{}, {}, {}])
        assert vaults.open(*both).forget(ADA) in {0, 6}
        assert vaults.names_of(ADA, *both) == {}
        for each in (BOB, EVE):
            assert vaults.names_of(each, *both) == NAMES
