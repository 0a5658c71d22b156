"""Forgetting in the vault is true under every key it ever had, or says that it cannot tell."""

from __future__ import annotations

import sqlite3

import pytest

from mnemoscope.memory import ScopeError, UncertainErasureError, VaultError, context
from mnemoscope.memory.limits.key_use import key_id_of
from mnemoscope.memory.privacy.vault.vault_keys import VaultCustomer
from mnemoscope.telemetry.event.sink_pseudonyms import PSEUDONYM
from mnemoscope.telemetry.event.subject import SubjectKeys
from tests.kit.patience import GIVE_UP_S
from tests.kit.vault_host import KEY, MAIL, NAME

ADA = VaultCustomer("c-1", "acme")
OTHER = "ffeeddccbbaa99887766554433221100"


def key_id(secret):
    """Return the id of *secret*, as doctor shows it."""
    return key_id_of(SubjectKeys(bytes.fromhex(secret)).key)


class TestKeys:
    def test_a_customer_under_a_key_that_is_not_configured_cannot_be_told(self, opened, stored):
        """The old key would still reveal them; the error has its id, and what to do."""
        text = stored(opened(KEY))
        with pytest.raises(UncertainErasureError) as told:
            opened(OTHER).scope.vault.forget("c-1", "acme")

        assert NAME in opened(KEY).reveal(text)
        assert told.value.unseen == {key_id(KEY): 1}
        assert key_id(KEY) in str(told.value)
        assert "MNEMOSCOPE_AUDIT_PREVIOUS_KEYS" in str(told.value)
        assert "\n" not in str(told.value)

    def test_what_can_be_found_is_forgotten_all_the_same(self, opened, stored):
        """And counted, in the error."""
        stored(opened(KEY))
        host = opened(OTHER)
        text = stored(host)
        with pytest.raises(UncertainErasureError) as told:
            host.scope.vault.forget("c-1", "acme")

        assert told.value.erased == 2
        assert host.reveal(text) == text

    def test_with_the_old_key_as_a_previous_one_all_is_forgotten(self, opened, stored):
        """No key that the vault ever had reveals them."""
        text, newer = stored(opened(KEY)), stored(opened(OTHER))
        erased = opened(OTHER, KEY).scope.vault.forget("c-1", "acme")

        assert erased == 4
        assert opened(KEY).reveal(text) == text
        assert opened(OTHER).reveal(newer) == newer

    def test_the_next_key_of_a_rollout_is_found_too(self, opened, stored):
        """A process that has not changed yet names it among the others."""
        newer = stored(opened(OTHER))

        assert opened(KEY, OTHER).scope.vault.forget("c-1", "acme") == 2
        assert opened(OTHER).reveal(newer) == newer

    def test_others_under_a_lost_key_make_it_uncertain_until_they_are_dropped(self, opened, stored):
        """Whose rows they are cannot be told, and nobody needs what cannot be read."""
        stored(opened(KEY), customer="c-2")
        host = opened(OTHER)
        text = stored(host)
        with pytest.raises(UncertainErasureError):
            host.scope.vault.forget("c-1", "acme")
        dropped = host.scope.vault.rotate(drop_unreadable=True).dropped
        stored(host)

        assert dropped == 1
        assert host.scope.vault.forget("c-1", "acme") == 2
        assert host.reveal(text) == text


class TestFiles:
    def test_a_missing_file_cannot_be_told(self, opened, stored, path):
        """What was in it may be elsewhere."""
        host = opened()
        stored(host)
        path.unlink()

        with pytest.raises(UncertainErasureError, match="not there"):
            host.scope.vault.forget("c-1", "acme")

    def test_a_file_that_was_never_used_cannot_be_told(self, opened):
        """It may have been made just now, where the setting names the wrong one; twice as well."""
        for _attempt in range(2):
            with pytest.raises(UncertainErasureError, match="MNEMOSCOPE_VAULT"):
                opened().scope.vault.forget("c-1", "acme")

    def test_who_is_not_in_a_vault_in_use_has_nothing_there(self, opened, stored):
        """That is known, and stays so after somebody was forgotten."""
        host = opened()
        stored(host, customer="c-2")

        assert host.scope.vault.forget("c-1", "acme") == 0
        assert host.scope.vault.forget("c-2", "acme") == 2
        assert host.scope.vault.forget("c-2", "acme") == 0

    def test_a_file_that_is_made_again_is_told(self, opened, stored, path):
        """What it had is gone, and the loss is counted."""
        host = opened()
        stored(host)
        path.unlink()
        stored(host, text="I am Maria Garcia")

        assert host.parts.faults.counts["vault.missing"] == 1

    def test_a_locked_file_is_an_error_of_ours(self, opened, stored, path, monkeypatch):
        """In one line, and nothing is erased."""
        monkeypatch.setattr("mnemoscope.memory.privacy.vault.vault_file.BUSY_S", 0.1)
        host = opened()
        text = stored(host)
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(VaultError, match="locked") as told:
            host.scope.vault.forget("c-1", "acme")
        holder.execute("ROLLBACK")
        holder.close()

        assert "\n" not in str(told.value)
        assert NAME in host.reveal(text)

    def test_an_unreadable_file_is_an_error_of_ours(self, opened, stored, path):
        """As is a folder in its place."""
        host = opened()
        stored(host)
        path.unlink()
        path.mkdir()

        with pytest.raises(VaultError, match="could not be read"):
            host.scope.vault.forget("c-1", "acme")

    def test_damaged_pages_are_an_error_of_ours(self, opened, stored, path):
        """The file is a database still, and its tables are not."""
        host = opened()
        stored(host)
        whole = path.read_bytes()
        path.write_bytes(whole[:4096] + bytes(b ^ 0xFF for b in whole[4096:]))

        with pytest.raises(VaultError, match="malformed"):
            host.scope.vault.forget("c-1", "acme")

    @pytest.mark.parametrize("mode", ["delete", "wal", "persist", "truncate"])
    def test_what_is_forgotten_is_in_no_file(self, opened, stored, path, mode):
        """Neither ciphertext nor hash, in whichever mode somebody has set the file."""
        host = opened()
        stored(host)
        stored(host, customer="c-2")
        with sqlite3.connect(path) as connection:
            connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.close()
        stored(host, text="I am Maria Garcia, mail maria@example.com")
        with sqlite3.connect(path) as connection:
            before = set(connection.execute("SELECT sealed FROM vault_entry").fetchall())
        connection.close()
        at_rest = host.bytes_at_rest()
        host.scope.vault.forget("c-1", "acme")
        with sqlite3.connect(path) as connection:
            after = set(connection.execute("SELECT sealed FROM vault_entry").fetchall())
        connection.close()
        gone = [sealed for (sealed,) in before - after]

        assert (len(before), len(gone)) == (6, 4)
        assert all(each in at_rest for each in gone)
        assert not any(each in host.bytes_at_rest() for each in gone)

    def test_what_a_write_ahead_log_would_keep_is_not_said_to_be_forgotten(
        self, opened, stored, path, monkeypatch
    ):
        """Somebody has the file open in that mode: it is an error until they have gone."""
        monkeypatch.setattr("mnemoscope.memory.privacy.vault.vault_file.BUSY_S", 0.1)
        host = opened()
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("PRAGMA journal_mode = WAL")
        text = stored(host)
        (sealed,) = holder.execute("SELECT sealed FROM vault_entry LIMIT 1").fetchone()
        with pytest.raises(VaultError, match="locked"):
            host.scope.vault.forget("c-1", "acme")
        shown = host.reveal(text)
        holder.close()

        assert NAME in shown
        assert sealed in host.bytes_at_rest()
        assert host.scope.vault.forget("c-1", "acme") == 2
        assert sealed not in host.bytes_at_rest()


class TestWhose:
    def test_in_one_tenant_nobody_elses_is_touched(self, opened, stored):
        """The same id elsewhere is another person."""
        host = opened()
        stored(host)
        text = stored(host, tenant="other")

        assert host.scope.vault.forget("c-1", "acme") == 2
        assert NAME in host.reveal(text, tenant="other")

    def test_without_a_tenant_several_are_refused(self, opened, stored):
        """In one line, without the id; nothing is done."""
        host = opened()
        text, other = stored(host), stored(host, tenant="other")
        with pytest.raises(ScopeError, match="name the tenant") as told:
            host.scope.vault.forget("c-1")

        assert "c-1" not in str(told.value)
        assert "\n" not in str(told.value)
        assert NAME in host.reveal(text)
        assert NAME in host.reveal(other, tenant="other")

    def test_without_a_tenant_one_among_tenants_is_refused(self, opened, stored):
        """Somebody without a tenant, and somebody with one."""
        host = opened()
        text = stored(host, tenant=None)
        stored(host)
        with pytest.raises(ScopeError, match="name the tenant"):
            host.scope.vault.forget("c-1")

        assert NAME in host.reveal(text, tenant=None)

    def test_the_only_one_is_found_without_their_tenant(self, opened, stored):
        """It is no miss that says that all is forgotten."""
        host = opened()
        text = stored(host)
        stored(host, customer="c-2", tenant="other")

        assert host.scope.vault.forget("c-1") == 2
        assert host.reveal(text) == text

    def test_all_tenants_are_forgotten_if_that_is_said(self, opened, stored):
        """And nobody else."""
        host = opened()
        text = stored(host)
        for customer, tenant in (("c-1", "other"), ("c-1", None), ("c-2", "acme")):
            stored(host, customer=customer, tenant=tenant)

        assert host.scope.vault.forget("c-1", all_tenants=True) == 6
        assert host.reveal(text) == text
        assert NAME in host.reveal(text, customer="c-2")

    def test_no_tenant_can_be_said(self, opened, stored):
        """By an empty one."""
        host = opened()
        text, other = stored(host, tenant=None), stored(host)

        assert host.scope.vault.forget("c-1", "") == 2
        assert host.reveal(text, tenant=None) == text
        assert NAME in host.reveal(other)

    def test_a_customer_without_tenant_under_two_keys_is_one(self, opened, stored):
        """Where there are no tenants, none has to be named."""
        stored(opened(KEY), tenant=None)
        stored(opened(OTHER, KEY), tenant=None)

        assert opened(OTHER, KEY).scope.vault.forget("c-1") == 4

    def test_all_and_one_contradict_each_other(self, opened):
        """Nothing is done."""
        with pytest.raises(ScopeError, match="all_tenants"):
            opened().scope.vault.forget("c-1", "acme", all_tenants=True)

    def test_all_is_too_much_in_the_context_of_one(self, opened):
        """Where tenancy is enforced."""
        host = opened(tenancy="enforce")
        with context(tenant="acme"), pytest.raises(ScopeError, match="all_tenants"):
            host.scope.vault.forget("c-1", all_tenants=True)

    def test_a_person_erased_everywhere_is_told_what_the_vault_says(self, opened, stored):
        """The error for whoever erases has the line, and no id of a customer."""
        from mnemoscope.memory.subject_data.records import NotErasedError

        host = opened()
        stored(host)
        stored(host, tenant="other")
        with (
            host.scope.customer_data("c-1") as data,
            pytest.raises(NotErasedError, match="name the tenant"),
        ):
            data.erase_pseudonyms()


class TestDamage:
    @pytest.mark.parametrize(
        "damage", [b"", b"short", b"x" * 60, "text", 7, None], ids=lambda each: type(each).__name__
    )
    def test_a_damaged_row_stays_a_pseudonym_and_the_others_do_not(
        self, opened, stored, path, damage
    ):
        """Whatever it has become; it is counted, and in the scope's health."""
        host = opened()
        bad, good = stored(host, text="I am Maria Garcia"), stored(host)
        with sqlite3.connect(path) as connection:
            _set(connection, "vault_entry", "sealed", damage, f"instr('{bad}', pseudonym)")
        connection.close()
        shown = host.reveal(f"{bad} {good}")
        checks = {each.name: each for each in host.scope.health(GIVE_UP_S).checks}

        assert shown.startswith(bad)
        assert NAME in shown
        assert host.parts.faults.counts["vault.damaged"] == 1
        assert "vault.damaged" in checks["self-defence"].detail

    @pytest.mark.parametrize("damage", [b"", b"x" * 60, "text", None], ids=repr)
    def test_a_damaged_key_is_one_customers(self, opened, stored, path, damage):
        """Theirs stay pseudonyms, what they say from now on is counted as lost, others go on."""
        host = opened()
        text = stored(host)
        stored(host, customer="c-2")
        with sqlite3.connect(path) as connection:
            subject = host.subject("c-1", "acme")
            _set(connection, "vault_key", "wrapped", damage, f"subject = '{subject}'")
        connection.close()
        shown, others = host.reveal(text), host.reveal(text, customer="c-2")
        host.write("I am Maria Garcia")
        stored(host, customer="c-3")

        assert shown == text
        assert NAME in others
        assert host.parts.faults.counts["vault.damaged"] == 2
        assert host.parts.faults.counts["vault.keep"] == 1
        assert NAME in host.reveal(text, customer="c-3")

    def test_who_is_damaged_can_be_forgotten(self, opened, stored, path):
        """They are looked up by their hash, which is not their key."""
        host = opened()
        stored(host)
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE vault_key SET wrapped = x'00'")
        connection.close()

        assert host.scope.vault.forget("c-1", "acme") == 2
        stored(host)
        assert host.scope.vault.forget("c-1", "acme") == 2

    def test_every_byte_may_be_wrong(self, opened, stored, path):
        """Flipped in turn: what is shown is right or absent; what is raised fails open."""
        host = opened()
        text = stored(host)
        outcomes = set()
        for _at in _flipped(path):
            try:
                shown = host.parts.vault.originals(ADA, PSEUDONYM.findall(text))
            except sqlite3.Error as exc:
                outcomes.add(type(exc))
            else:
                outcomes |= set(shown.values()) or {"nothing"}

        assert outcomes >= {NAME, MAIL, "nothing", sqlite3.DatabaseError}
        assert {each for each in outcomes if isinstance(each, str)} == {NAME, MAIL, "nothing"}

    def test_with_any_byte_wrong_forgetting_is_true_or_an_error(self, opened, stored, path):
        """Flipped in turn: either nothing can be revealed any more, or it was not said."""
        host = opened()
        text = stored(host)
        stored(host, customer="c-2")
        vault, outcomes = host.parts.vault, set()
        for _at in _flipped(path, every=11):
            try:
                outcomes.add(vault.forget(ADA))
            except (VaultError, sqlite3.Error) as exc:
                outcomes.add(type(exc))
            else:
                assert vault.originals(ADA, PSEUDONYM.findall(text)) == {}

        assert outcomes >= {1, 2, UncertainErasureError, sqlite3.DatabaseError}


def _flipped(path, every=1):
    """Yield each place of a byte that is wrong meanwhile."""
    whole = path.read_bytes()
    for at in [at for at, byte in enumerate(whole) if byte][::every]:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x81]) + whole[at + 1 :])
        yield at
    path.write_bytes(whole)


def _set(connection, table, column, value, condition):
    """Write what the table's own rules would refuse."""
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_schema SET sql = replace(sql, ' NOT NULL', '')")
    connection.commit()
    connection.execute("PRAGMA writable_schema = RESET")
    query = f"UPDATE {table} SET {column} = ? WHERE {condition}"  # noqa: S608 - literals
    connection.execute(query, (value,))
