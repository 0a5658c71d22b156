"""
Whose request it is: the person is looked up in the trail and in live stores before it is answered.

Who is not in the trail and whose id a store holds is known, by that store alone. Stores know no
tenants, so of an id that the trail knows in one tenant a store's records are that tenant's; of one
that it knows in several they are nobody's, until whoever asks says whose.
"""

from __future__ import annotations

from ...audit.log import AuditLog
from ...audit.store.person_lookup import CustomerQuery, InStores, Person
from ...memory.scope import Mnemoscope
from ...memory.subject_data.records import DataSubject, StoreData
from ...telemetry.event.spelling import Identity, readings, usual_spellings

FLUSH_S = 5.0
"""Seconds that queued events are given to reach the trail before it is read."""

SHARED = "it cannot tell whose the records are that it has under this id"
"""Why a store is not asked that another tenant may have a customer of this id in. Names nobody."""


def person_in_log(log: AuditLog, query: CustomerQuery) -> Person:
    """
    Return the person that *query* names, by the trail alone.

    Raises:
        UnknownSubjectError: Nobody is known by one of the ids.
        AmbiguousSubjectError: Several people are.
        AuditError: The trail cannot be read, or its keys are others.
    """
    return log.find(query)


def person_in_scope(scope: Mnemoscope, query: CustomerQuery) -> Person:
    """
    Return the person that *query* names, by the trail of *scope* and by its live stores.

    Raises:
        UnknownSubjectError: Nobody is known by one of the ids.
        AmbiguousSubjectError: Several people are.
        ConfigurationError: The scope is disabled or has no audit trail.
        ScopeError: An id is empty or a wildcard.
        AuditError: The trail cannot be read, or its keys are others.
    """
    scope.flush(FLUSH_S)
    log = scope.audit
    # Before the snapshot: what a store knows and the log does not yet is somebody.
    held = _in_stores(scope, query)
    return log.find(query, held)


def unknown_person(query: CustomerQuery) -> Person:
    """Return a person of the queried ids, without a look into any store."""
    identities = tuple(Identity(name, query.tenant or "") for name in query.names)
    return Person(identities=identities, is_logged=False)


def _in_stores(scope: Mnemoscope, query: CustomerQuery) -> InStores:
    """Ask each store for each id, in all readings, and for its usual spellings."""
    found: set[str] = set()
    silent: dict[str, str] = {}
    subjects = [DataSubject(customer=name) for name in query.names]  # refuses nobody and everybody
    with scope.customer_data(query.customer, tenant=query.tenant) as data:
        names = (reading for each in subjects for reading in readings(each.customer))
        for name in dict.fromkeys(spelling for each in names for spelling in usual_spellings(each)):
            for store in data.stores(DataSubject(customer=name, tenant=query.tenant)):
                if store.name not in silent and holds(store, silent):
                    found.add(name)
    return InStores(frozenset(found), tuple(silent.values()))


def holds(store: StoreData, silent: dict[str, str]) -> bool:
    """Tell whether *store* holds anything; one that could not be asked is noted in *silent*."""
    reason = store.unavailable
    if reason is None:
        try:
            return next(iter(store.records()), None) is not None
        except Exception as exc:  # noqa: BLE001 - whatever it was, the store was not asked
            reason = type(exc).__qualname__
    silent[store.name] = f"{store.name} could not be asked ({reason})"
    return False
