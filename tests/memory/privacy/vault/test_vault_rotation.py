"""The key of a vault can be changed, and its files of earlier versions are read."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from textwrap import dedent

import pytest

from mnemoscope.memory import (
    ConfigurationError,
    ScopeError,
    State,
    UncertainErasureError,
    VaultError,
)
from mnemoscope.memory.limits.key_use import key_id_of
from mnemoscope.memory.privacy.vault import vault_file
from mnemoscope.memory.privacy.vault.vault_file import Rotation
from mnemoscope.memory.privacy.vault.vault_keys import VaultCustomer
from mnemoscope.telemetry.event.subject import SubjectKeys
from tests.kit.patience import GIVE_UP_S
from tests.kit.vault_host import KEY, NAME
from tests.kit.vault_version_1 import make

OTHER, THIRD = "ffeeddccbbaa99887766554433221100", "0f" * 16
PERSON, PLACE = "<PERSON_0123456789abcdef>", "<LOCATION_fedcba9876543210>"
NAMES = {PERSON: "Jennifer Smith", PLACE: "Zürich"}


def key_id(secret):
    """Return the id of *secret*, as doctor shows it."""
    return key_id_of(SubjectKeys(bytes.fromhex(secret)).key)


def rows(path, query):
    """Return what the file says."""
    with sqlite3.connect(path) as connection:
        found = connection.execute(query).fetchall()
    connection.close()
    return found


class TestChanging:
    def test_what_the_old_key_stored_is_revealed_under_the_new_one(self, opened, stored):
        """As long as the old one is named among the previous ones."""
        text = stored(opened(KEY))

        assert NAME in opened(OTHER, KEY).reveal(text)
        assert opened(OTHER).reveal(text) == text

    def test_what_is_new_is_under_the_current_key(self, opened, stored):
        """The previous one does not open it."""
        stored(opened(KEY))
        text = stored(opened(OTHER, KEY))

        assert NAME in opened(OTHER).reveal(text)
        assert opened(KEY).reveal(text) == text

    def test_a_pseudonym_under_a_key_that_is_not_here_is_counted(self, opened, stored, path):
        """Wrapped anew by somebody who has the next key, it stays a pseudonym here."""
        old = opened(KEY)
        text = stored(old)
        opened(OTHER, KEY).scope.vault.rotate()

        assert old.reveal(text) == text
        assert old.parts.faults.counts["vault.locked"] == 2
        assert old.parts.faults.counts["vault.damaged"] == 0

    def test_a_key_that_is_none_is_refused_when_configured(self, opened):
        """By the name of its variable, without its value."""
        with pytest.raises(ConfigurationError, match="MNEMOSCOPE_AUDIT_PREVIOUS_KEYS") as told:
            opened(KEY, "zz-not-a-key")

        assert "zz-not" not in str(told.value)


class TestRotating:
    def test_afterwards_the_old_key_is_not_needed(self, opened, stored):
        """All is revealed with the new one alone, and found by it when it is forgotten."""
        text, other = stored(opened(KEY)), stored(opened(KEY), customer="c-2")
        done = opened(OTHER, KEY).scope.vault.rotate()
        host = opened(OTHER)

        assert done == Rotation(rewrapped=2)
        assert NAME in host.reveal(text)
        assert host.scope.vault.forget("c-1", "acme") == 2
        assert host.reveal(text) == text
        assert NAME in host.reveal(other, customer="c-2")

    def test_the_old_key_opens_nothing_any_more(self, opened, stored, path):
        """Neither a row nor a byte of what it had wrapped is left."""
        text = stored(opened(KEY))
        before = [row[0] for row in rows(path, "SELECT wrapped FROM vault_key")]
        host = opened(OTHER, KEY)
        host.scope.vault.rotate()

        assert not any(each in host.bytes_at_rest() for each in before)
        assert opened(KEY).reveal(text) == text

    def test_with_the_old_key_alone_forgetting_is_still_true(self, opened, stored):
        """They are found by the hash that it gives, though not revealed."""
        text = stored(opened(KEY))
        opened(OTHER, KEY).scope.vault.rotate()

        assert opened(KEY).scope.vault.forget("c-1", "acme") == 2
        assert opened(OTHER).reveal(text) == text

    def test_twice_is_as_good_as_once(self, opened, stored):
        """The second finds nothing to do."""
        stored(opened(KEY))
        host = opened(OTHER, KEY)
        host.scope.vault.rotate()

        assert host.scope.vault.rotate() == Rotation()

    def test_back_and_forth_and_on(self, opened, stored):
        """Each key in turn is enough, and the last finds what the first has stored."""
        text = stored(opened(KEY))
        for current, previous in ((OTHER, KEY), (KEY, OTHER), (THIRD, KEY)):
            opened(current, previous).scope.vault.rotate()
            assert NAME in opened(current).reveal(text)

        assert opened(THIRD).scope.vault.forget("c-1", "acme") == 2

    def test_what_does_not_open_is_told_and_left(self, opened, stored, path):
        """Under a key that is not configured, or damaged: somebody may repair it."""
        text = stored(opened(KEY))
        stored(opened(OTHER), customer="c-2")
        done = opened(OTHER).scope.vault.rotate()

        assert done == Rotation(unreadable=1)
        assert NAME in opened(KEY).reveal(text)

    def test_what_does_not_open_is_dropped_if_that_is_said(self, opened, stored, path):
        """Key and rows."""
        stored(opened(KEY))
        stored(opened(OTHER), customer="c-2")
        done = opened(OTHER).scope.vault.rotate(drop_unreadable=True)

        assert done == Rotation(dropped=1)
        assert rows(path, "SELECT count(*) FROM vault_key") == [(1,)]
        assert rows(path, "SELECT count(*) FROM vault_entry") == [(2,)]

    def test_what_was_dropped_is_stored_when_it_is_met_again(self, opened, stored, path):
        """In spite of what is known to have been stored a moment ago."""
        host = opened()
        text = stored(host)
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE vault_key SET wrapped = x'00'")
        connection.close()
        host.scope.vault.rotate(drop_unreadable=True)
        stored(host)

        assert NAME in host.reveal(text)

    def test_many_are_rewrapped_a_part_at_a_time(self, opened, stored, path, monkeypatch):
        """Others write in between; a text that is damaged ends nothing."""
        monkeypatch.setattr(vault_file, "_REWRAPPED_AT_ONCE", 2)
        host = opened(KEY)
        texts = {f"c-{each}": stored(host, customer=f"c-{each}") for each in range(5)}
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE vault_key SET key_id = CAST(x'ff80' AS TEXT)")
        connection.close()
        done = opened(OTHER, KEY).scope.vault.rotate()

        assert done == Rotation(rewrapped=5)
        assert all(NAME in opened(OTHER).reveal(text, customer=c) for c, text in texts.items())

    def test_others_write_meanwhile(self, opened, path):
        """Processes that know both keys lose nothing, whichever is their current one."""
        opened().scope.close(GIVE_UP_S)
        code = dedent(
            f"""
            import sys
            from pathlib import Path
            from mnemoscope.memory.privacy.vault.vault import Vault
            from mnemoscope.telemetry.process.faults import Faults
            from mnemoscope.telemetry.event.subject import SubjectKeys
            current, previous = (SubjectKeys(bytes.fromhex(each)) for each in sys.argv[1:])
            faults = Faults()
            vault = Vault(Path({str(path)!r}), keys=current, previous=[previous], faults=faults)
            for number in range(30):
                vault.for_customer(f"c-{{number % 3}}", "acme").store(
                    f"<PERSON_{{number:016x}}>", str(number), "PERSON"
                )
                vault.flush({GIVE_UP_S})
            assert not faults.counts, faults.counts
            """
        )
        rings = (KEY, OTHER), (OTHER, KEY)
        running = [subprocess.Popen([sys.executable, "-c", code, *ring]) for ring in rings]
        hosts = [opened(*ring) for ring in rings]
        file = hosts[0].parts.vault.file
        while running[0].poll() is None and not file.state().customers:
            pass  # it has begun
        for each in hosts * 5:
            each.scope.vault.rotate()
        codes = [each.wait(GIVE_UP_S) for each in running]
        hosts[-1].scope.vault.rotate()
        vault = opened(OTHER).parts.vault
        shown = {}
        for customer in ("c-0", "c-1", "c-2"):
            names = [f"<PERSON_{number:016x}>" for number in range(30)]
            shown |= vault.originals(VaultCustomer(customer, "acme"), names)

        assert codes == [0, 0]
        assert sorted(map(int, shown.values())) == list(range(30))

    def test_without_a_file_it_is_an_error_of_ours(self, opened, path):
        """In one line."""
        host = opened()
        path.unlink()

        with pytest.raises(VaultError, match="unable to open") as told:
            host.scope.vault.rotate()
        assert "\n" not in str(told.value)


class TestHealth:
    """The check ``vault`` of the scope's health."""

    @staticmethod
    def check(host):
        """Return it."""
        return next(each for each in host.scope.health(GIVE_UP_S).checks if each.name == "vault")

    def test_all_under_configured_keys_is_well(self, opened, stored, path):
        """As is a file of version 1, which noted none."""
        make(path, [(KEY, "c-1", "acme", NAMES)])
        stored(opened(OTHER, KEY))

        assert self.check(opened(OTHER, KEY)).state is State.OK
        assert self.check(opened(OTHER, KEY)).detail == f"2 customers in {path}"

    def test_keys_that_are_not_configured_are_a_warning(self, opened, stored, path):
        """With their ids."""
        make(path, [(THIRD, "c-1", "acme", NAMES)])
        stored(opened(KEY))
        stored(opened(OTHER))
        check = self.check(opened(OTHER))

        assert check.state is State.WARNING
        assert "3 customers" in check.detail
        assert f"2 under keys that are not configured (not noted, {key_id(KEY)})" in check.detail

    def test_a_file_that_is_not_there_has_failed(self, opened, path):
        """Nobody is made to wait for it."""
        host = opened()
        path.unlink()

        assert self.check(host).state is State.FAILED

    def test_without_a_vault_it_is_off(self, opened):
        """Nothing is wrong."""
        assert self.check(opened(vault=None)).state is State.OFF


class TestVersion1:
    def test_nothing_is_lost(self, opened, path):
        """It is revealed, added to, wrapped anew, and forgotten."""
        make(path, [(KEY, "c-1", "acme", NAMES), (KEY, "c-2", None, {PERSON: "Maria"})])
        host = opened()
        shown = host.reveal(f"{PERSON} in {PLACE}")
        host.parts.vault.for_customer("c-1", "acme").store("<PERSON_00000000000000aa>", "Ada", "x")
        more = host.reveal(f"{PERSON} <PERSON_00000000000000aa>")

        assert shown == "Jennifer Smith in Zürich"
        assert more == "Jennifer Smith Ada"
        assert host.reveal(PERSON, customer="c-2", tenant=None) == "Maria"
        assert opened(OTHER, KEY).scope.vault.rotate() == Rotation(rewrapped=2)
        assert opened(OTHER).reveal(PERSON) == "Jennifer Smith"
        assert opened(OTHER).scope.vault.forget("c-1", "acme") == 3
        assert opened(OTHER).reveal(PERSON, customer="c-2", tenant=None) == "Maria"

    def test_it_is_read_before_it_could_be_written(self, opened, path, monkeypatch):
        """Where it was locked when the scope was made."""
        monkeypatch.setattr(vault_file, "BUSY_S", 0.1)
        make(path, [(KEY, "c-1", "acme", NAMES)])
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        host = opened()
        holder.execute("ROLLBACK")
        holder.close()

        assert host.reveal(PERSON) == "Jennifer Smith"

    def test_a_key_that_it_did_not_note_cannot_be_told(self, opened, path):
        """Until that key is configured."""
        make(path, [(KEY, "c-1", "acme", NAMES), (OTHER, "c-2", "acme", NAMES)])
        with pytest.raises(UncertainErasureError, match="not noted by an earlier version") as told:
            opened(OTHER).scope.vault.forget("c-1", "acme")

        assert told.value.unseen == {"": 1}
        assert opened(OTHER, KEY).scope.vault.forget("c-1", "acme") == 2

    def test_its_secrets_are_noted_when_they_are_found(self, opened, path):
        """From then on the key that found them is enough to look them up."""
        make(path, [(KEY, "c-1", "acme", NAMES), (OTHER, "c-2", "acme", NAMES)])
        opened(OTHER, KEY).scope.vault.forget("c-3", "acme")

        assert opened(OTHER).scope.vault.forget("c-1", "acme") == 2

    def test_without_a_tenant_its_customers_cannot_be_told(self, opened, path):
        """It did not note what a search in all tenants takes; each of them can be named."""
        make(path, [(KEY, "c-1", "acme", NAMES), (KEY, "c-1", None, NAMES)])
        host = opened()
        with pytest.raises(UncertainErasureError, match="for each tenant by name") as told:
            host.scope.vault.forget("c-1")

        assert told.value.erased == 2
        assert host.reveal(PERSON, tenant=None) == PERSON
        assert host.scope.vault.forget("c-1", "") == 0
        assert host.scope.vault.forget("c-1", "acme") == 2

    def test_who_is_met_again_is_found_without_their_tenant(self, opened, path):
        """Then it is noted."""
        make(path, [(KEY, "c-1", "acme", NAMES)])
        host = opened()
        host.write()
        host.scope.flush(GIVE_UP_S)

        assert host.scope.vault.forget("c-1") == 4
        with pytest.raises(ScopeError):
            host.scope.vault.forget("c-1", "acme", all_tenants=True)

    def test_an_empty_one_cannot_be_told(self, opened, path):
        """Nobody knows whether it was ever used."""
        make(path, [])

        with pytest.raises(UncertainErasureError, match="nothing was ever stored"):
            opened().scope.vault.forget("c-1", "acme")
