"""The vault against a model of it, under any order of what can happen to it and to its keys."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mnemoscope.memory import ScopeError, UncertainErasureError
from mnemoscope.memory.api import Faults
from mnemoscope.memory.privacy.vault.vault import Vault
from mnemoscope.memory.privacy.vault.vault_keys import VaultCustomer
from mnemoscope.telemetry.event.subject import SubjectKeys
from tests.kit.lengths import examples
from tests.kit.patience import GIVE_UP_S

SECRETS = [SubjectKeys(bytes([number]) * 16) for number in range(3)]
PEOPLE = [VaultCustomer(*each) for each in (("ada", "a"), ("ada", "b"), ("ada", ""), ("bob", "a"))]
PSEUDONYMS = [f"<PERSON_{number:016x}>" for number in range(2)]
KEYS = st.integers(0, len(SECRETS) - 1)
PERSONS = st.sampled_from(PEOPLE)


def name_of(person, pseudonym):
    """Return what *pseudonym* stands for."""
    return f"{pseudonym[-2]} of {person.customer} in {person.tenant}"


@dataclass
class Row:
    """A customer's key: who wraps it, and which of their pseudonyms are there."""

    wrapped_by: int
    whole: set[str] = field(default_factory=set)
    damaged: set[str] = field(default_factory=set)
    is_damaged: bool = False


class VaultMachine(RuleBasedStateMachine):
    """
    What was not forgotten is revealed by the keys that are configured; what was said to be is not.

    Attributes:
        rows: By person and the secret that they are looked up by.
        lookups: The secret that wraps the lookup key of each.
        ring: The secrets that are configured, the current one first.
    """

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "vault.db"
        self.rows = {}
        self.lookups = {}
        self.ring = (0,)
        self.vault = self.vault_of(*self.ring)
        self.vault.file.open()

    def teardown(self):
        """Close it, and look at it with every secret once more."""
        self.vault.close(10)
        shutil.rmtree(self.folder)

    def vault_of(self, current, *previous):
        """Return the vault as a process with these secrets has it."""
        others = [SECRETS[each] for each in previous]
        return Vault(self.path, keys=SECRETS[current], previous=others, faults=Faults())

    def finds(self, secret):
        """Return whether customers can be looked up by *secret* now."""
        return secret in self.ring or self.lookups.get(secret) in self.ring

    # -- what is done ------------------------------------------------------------------------------

    @rule(person=PERSONS, pseudonym=st.sampled_from(PSEUDONYMS))
    def seal(self, person, pseudonym):
        """Store a name."""
        part = self.vault.for_customer(person.customer, person.tenant)
        part.store(pseudonym, name_of(person, pseudonym), "PERSON")
        assert self.vault.flush(GIVE_UP_S)
        current = self.ring[0]
        row = self.rows.get((person, current))
        if row is None:
            row = self.rows[person, current] = Row(current)
            self.lookups.setdefault(current, current)
        if not row.is_damaged and row.wrapped_by in self.ring and pseudonym not in row.damaged:
            row.whole.add(pseudonym)

    @rule(person=PERSONS)
    def forget(self, person):
        """Forget somebody in their tenant."""
        whose = {key for key in self.rows if key[0] == person}
        self.forgotten(whose, lambda: self.vault.forget(person))

    @rule(customer=st.sampled_from(["ada", "bob"]))
    def forget_in_all_tenants(self, customer):
        """Forget an id."""
        whose = {key for key in self.rows if key[0].customer == customer}
        self.forgotten(whose, lambda: self.vault.forget(VaultCustomer(customer), all_tenants=True))

    @rule(customer=st.sampled_from(["ada", "bob"]))
    def forget_without_a_tenant(self, customer):
        """Forget somebody whose tenant was not said: refused where there are several."""
        whose = {key for key in self.rows if key[0].customer == customer}
        seen = {key for key in whose if self.finds(key[1])}
        tenants = {person.tenant for person, _secret in seen}
        try:
            self.forgotten(whose, lambda: self.vault.forget(VaultCustomer(customer)))
        except ScopeError:
            assert len(seen) > 1
            assert tenants != {""}
        else:
            assert len(tenants) <= 1

    def forgotten(self, whose, forget):
        """See that it is done, or that it is said that it cannot be told."""
        seen = {key for key in whose if self.finds(key[1])}
        unseen = any(not self.finds(secret) for _person, secret in self.rows)
        try:
            erased = forget()
        except UncertainErasureError as exc:
            assert unseen or not self.lookups
            erased = exc.erased
        else:
            assert not unseen
            everything = self.vault_of(*range(len(SECRETS)))
            for person in {key[0] for key in whose}:
                assert everything.originals(person, PSEUDONYMS) == {}
        assert erased == sum(len(self.rows[k].whole) + len(self.rows[k].damaged) for k in seen)
        for key in seen:
            del self.rows[key]

    @rule()
    def rotate(self):
        """Wrap everything with the current secret."""
        rotation = self.vault.rotate()
        unreadable = 0
        for row in self.rows.values():
            if row.is_damaged or row.wrapped_by not in self.ring:
                unreadable += 1
            else:
                row.wrapped_by = self.ring[0]
        for secret in filter(self.finds, self.lookups):
            self.lookups[secret] = self.ring[0]
        assert rotation.unreadable == unreadable

    @rule()
    def drop_what_nobody_can_read(self):
        """Then forgetting is sure again."""
        self.rotate()
        self.vault.rotate(drop_unreadable=True)
        self.rows = {k: row for k, row in self.rows.items() if row.wrapped_by == self.ring[0]}
        self.rows = {k: row for k, row in self.rows.items() if not row.is_damaged}

    @rule(current=KEYS, previous=st.sets(KEYS))
    def change_the_keys(self, current, previous):
        """End the process, and begin one with other keys."""
        self.vault.close(10)
        self.ring = (current, *sorted(previous - {current}))
        self.vault = self.vault_of(*self.ring)
        self.vault.file.open()

    @rule()
    def open_again(self):
        """End the process, and begin another."""
        self.change_the_keys(self.ring[0], set(self.ring))

    @rule(data=st.data())
    def damage_a_name(self, data):
        """Write nonsense over one."""
        names = [(key, each) for key, row in self.rows.items() for each in sorted(row.whole)]
        if not names:
            return
        (person, secret), pseudonym = data.draw(st.sampled_from(names))
        row = self.rows[person, secret]
        row.whole.remove(pseudonym)
        row.damaged.add(pseudonym)
        self.write(
            "UPDATE vault_entry SET sealed = x'00' || sealed WHERE subject = ? AND pseudonym = ?",
            (person.subject(SECRETS[secret].key("vault/subject")), pseudonym),
        )

    @rule(data=st.data())
    def damage_a_key(self, data):
        """Write nonsense over one."""
        if not self.rows:
            return
        person, secret = data.draw(st.sampled_from(list(self.rows)))
        self.rows[person, secret].is_damaged = True
        self.write(
            "UPDATE vault_key SET wrapped = x'00' WHERE subject = ?",
            (person.subject(SECRETS[secret].key("vault/subject")),),
        )

    def write(self, statement, values):
        """Change one row."""
        with closing(sqlite3.connect(self.path)) as connection, connection:
            assert connection.execute(statement, values).rowcount == 1

    # -- what holds --------------------------------------------------------------------------------

    @invariant()
    def everybody_is_revealed_what_is_theirs(self):
        """And nothing else."""
        for person in PEOPLE:
            readable = chain.from_iterable(
                row.whole
                for (whose, secret), row in self.rows.items()
                if whose == person and self.finds(secret)
                if row.wrapped_by in self.ring and not row.is_damaged
            )
            expected = {each: name_of(person, each) for each in readable}
            assert self.vault.originals(person, PSEUDONYMS) == expected


VaultMachine.TestCase.settings = settings(
    max_examples=examples(30),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


class TestHistories(VaultMachine.TestCase):
    """Any history."""
