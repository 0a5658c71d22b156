"""
Check digits: the algorithms of standards, and the column of the table that says which holds.

The column has terms with ``&`` between those that hold together and ``|`` between alternatives.
A term may begin with the part of the number that it is about, as ``[2:]``:

* ``sum(3,2,7..2;0-987654321;8)``: the weighted sum of the other characters gives that at 8, the
  last if none is said, by its rest: ``-`` for none. ``7..2`` counts down, A is 10 and Z 35.
* ``right(2,3,4;0K987654321)``: the same, weights from the right.
* ``sum(10,9,8;%11;0,3)``: the weighted sum of all characters leaves one of those rests, else 0.
* ``twice(1..9;3..9,1,2;0123456789-)``: by the rest of 11, with other weights where that is 10.
* ``cross(1,2,1,2)``: the digits of all products add up to the last one.
* ``date(ddmmyy;4;0,40;0,20)``: a date at 4, with what may be added to the day, and to the month.
* ``like(9[02])``: it begins so.
* a function of `national_checks`, or of this module.

A check takes a number in capitals without separators, and never raises for what its shape allows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from . import national_checks
from .arithmetic import is_day, weighted

Check = Callable[[str], bool]

_TERM = re.compile(r"(?:\[(-?\d*):(\d*)\])?(\w+)(?:\((.*)\))?")
_BIRTH_YEARS = range(1890, 2036)
_TEN, _ELEVEN = 10, 11


def unchecked(_number: str) -> bool:
    """Hold for every number: its kind has no check digit."""
    return True


def read_check(column: str) -> Check:
    """Return the check that *column* of the table says."""
    if column == "-":
        return unchecked
    ways = [[*map(_term, way.split(" & "))] for way in column.split(" | ")]
    return lambda number: any(all(check(number) for check in way) for way in ways)


def _term(source: str) -> Check:
    term = _TERM.fullmatch(source)
    if term is None:
        raise ValueError(f"no check: {source}")
    start, end, name, given = term.groups()
    check: Check = getattr(national_checks, name) if given is None else _MAKERS[name](given)
    if start is None:
        return check
    part = slice(int(start or 0), int(end) if end else None)
    return lambda number: check(number[part])


def _sum(given: str) -> Check:
    weights, of_rest, *places = given.split(";")
    factors = _numbers(weights)
    if of_rest.startswith("%"):
        modulus, rests = int(of_rest[1:]), _numbers(places[0] if places else "0")
        return lambda number: weighted(number, factors) % modulus in rests
    at = int(places[0]) if places else -1

    def holds(number: str) -> bool:
        others = number[:at] + (number[at + 1 :] if at != -1 else "")
        return number[at] == of_rest[weighted(others, factors) % len(of_rest)]

    return holds


def _right(given: str) -> Check:
    weights, of_rest = given.split(";")
    factors, modulus = _numbers(weights), len(of_rest)
    return lambda number: number[-1] == of_rest[weighted(number[-2::-1], factors) % modulus]


def _twice(given: str) -> Check:
    first, second, *tables = given.split(";")
    factors, others = _numbers(first), _numbers(second)
    of_rest = tables[0] if tables else "01234567890"

    def holds(number: str) -> bool:
        rest = weighted(number[:-1], factors) % _ELEVEN
        rest = weighted(number[:-1], others) % _ELEVEN if rest == _TEN else rest
        return number[-1] == of_rest[rest]

    return holds


def _cross(given: str) -> Check:
    factors = _numbers(given)

    def holds(number: str) -> bool:
        digits = "".join(f"{ord(char) - 64:02}" if char.isalpha() else char for char in number)
        products = (int(digit) * factor for digit, factor in zip(digits, factors, strict=False))
        return sum(sum(divmod(product, 10)) for product in products) % 10 == int(digits[-1])

    return holds


def _date(given: str) -> Check:
    order, at, *added = given.split(";")
    spans = {
        unit: slice(int(at) + order.index(unit), int(at) + order.rindex(unit) + 1)
        for unit in set(order)
    }
    whole = slice(int(at), int(at) + len(order))
    of_day, of_month = (_numbers(each) for each in (*added, "0", "0")[:2])

    def holds(number: str) -> bool:
        if not number[whole].isdigit():
            return False
        if "yyyy" in order and int(number[spans["y"]]) not in _BIRTH_YEARS:
            return False
        month, day = int(number[spans["m"]]), int(number[spans["d"]])
        return any(is_day(month - more, day - each) for more in of_month for each in of_day)

    return holds


def _like(given: str) -> Check:
    pattern = re.compile(given)
    return lambda number: pattern.match(number) is not None


_MAKERS: dict[str, Callable[[str], Check]] = {
    "sum": _sum,
    "right": _right,
    "twice": _twice,
    "cross": _cross,
    "date": _date,
    "like": _like,
}


def _numbers(given: str) -> Sequence[int]:
    """Return numbers between commas; ``9..2`` counts."""
    found: list[int] = []
    for each in given.split(","):
        first, _, last = each.partition("..")
        start, end = int(first), int(last or first)
        step = 1 if end >= start else -1
        found += range(start, end + step, step)
    return found
