"""Statements of calls that write, read or delete memories, as their records tell them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from ..guard.call import Call
from ..guard.operation import Record
from ..guard.stored import ABSENT, Members, Place, Statements, Value

MOST_RECORDS: Final = 512
"""Records of one call that are sealed: of a bulk load, each would be a row of the audit trail."""

_IS_THERE: Final = True


class RecordStatements:
    """
    The statements of one store's calls.

    Args:
        store: Its name.
        number: Returns the number of a value at a place.
        fades: Whether its records vanish by themselves.
    """

    def __init__(self, store: str, number: Callable[[Place, Any], float], *, fades: bool) -> None:
        self._store = store
        self._number = number
        self._fades = fades

    def written(self, call: Call) -> Statements:
        """Return what *call* wrote and removed."""
        method, of = call.method, Statements()
        if method.written is not None:
            records = list(method.written(call.result, call.arguments))
            of = self._written(call, records[:MOST_RECORDS])
            if not records or len(records) > MOST_RECORDS:
                of = of._replace(thinned=(self._whole(self._place(call, None)),))
        removed = None if method.removed is None else method.removed(call.arguments)
        if removed is None:
            return of
        place = self._place(call, removed.place)
        gone = tuple(Value(self._there(place, each), ABSENT) for each in map(str, removed.ids))
        cleared = thinned = of.thinned
        if removed.is_all:
            is_of_one = not (removed.place or removed.is_some) and call.scope.customer
            cleared = (self._set(call, place),) if is_of_one else (self._whole(place),)
            # Whose a record is that is looked for by its id alone is not known then.
            thinned = (*thinned, self._ids(place)) if is_of_one else thinned
        elif removed.is_some:
            thinned = (*thinned, self._whole(place))
        return Statements((*of.values, *gone), of.members, cleared=cleared, thinned=thinned)

    def read(self, call: Call) -> Statements:
        """Return what the answer of *call* has, and has to have."""
        records, method = call.found(), call.method
        values = tuple(self._found(call, records))
        sought = None if method.sought is None else method.sought(call.result, call.arguments)
        if sought is None or self._fades:
            return Statements(values)
        place = self._place(call, sought.place)
        found = {each.memory_id for each in records if self._place(call, each.place) == place}
        if sought.ids is None:
            return Statements(values, (self._members(call, place, tuple(found)),))
        lacking = [each for each in sought.ids if each not in found]
        absent = (
            Value(self._there(place, each), ABSENT, roots=self._roots(place)) for each in lacking
        )
        return Statements((*values, *absent))

    def _written(self, call: Call, records: Iterable[Record]) -> Statements:
        values: list[Value] = []
        names: dict[str, tuple[Any, list[str]]] = {}
        for record in records:
            place = self._place(call, record.place)
            values.append(Value(self._there(place, record.memory_id), _IS_THERE))
            values += [Value(*each) for each in self._parts(place, record)]
            names.setdefault(str(place), (place, []))[1].append(record.memory_id)
        sets = tuple(self._members(call, place, tuple(ids)) for place, ids in names.values())
        return Statements(tuple(values), sets)

    def _found(self, call: Call, records: Iterable[Record]) -> Iterable[Value]:
        for record in records:
            place = self._place(call, record.place)
            roots = self._roots(place)
            for part, value in self._parts(place, record):
                yield Value(part, value, roots=(self._there(place, record.memory_id), *roots))

    def _parts(self, place: Any, record: Record) -> Iterable[tuple[Place, Any]]:
        for name, value in record.parts:
            if value is not None:
                yield ("part", self._store, place, record.memory_id, name), value

    def _place(self, call: Call, place: Any) -> Any:
        if place:
            return place if isinstance(place, str) else (*place,)
        return call.method.collection(call.arguments) or ""

    def _set(self, call: Call, place: Any) -> Place:
        """Return the records that an answer may have all of: a collection's, or a person's."""
        return "all", self._store, place, "" if place else call.scope.customer

    def _members(self, call: Call, place: Any, ids: tuple[str, ...]) -> Members:
        there = "there", self._store, place
        return Members(self._set(call, place), ids, (self._whole(place),), there)

    def _there(self, place: Any, memory_id: str) -> Place:
        there = "there", self._store, place
        return *there, self._number(there, memory_id)

    def _roots(self, place: Any) -> tuple[Place, ...]:
        return self._whole(place), self._ids(place)

    def _whole(self, place: Any) -> Place:
        return "records", self._store, place

    def _ids(self, place: Any) -> Place:
        return "ids", self._store, place
