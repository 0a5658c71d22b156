"""How long a store asks to be left alone, whatever its exception is like."""

from __future__ import annotations

from typing import Any

import pytest

from mnemoscope.memory.guard.retry_after import LONGEST_S, retry_after_s

NOW_S = 1_700_000_000  # Tue, 14 Nov 2023 22:13:20 GMT
A_DAY_AGO = "Mon, 13 Nov 2023 22:13:20 GMT"


def wall_ns() -> int:
    """Return the time that the tests are made at."""
    return NOW_S * 10**9


class Told(Exception):  # noqa: N818 - one of nobody's
    """An exception with attributes as they are given."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__()
        vars(self).update(attributes)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0", 0.0),
        (" 12 ", 12.0),
        ("1.5", 1.5),
        (3, 3.0),
        (2.5, 2.5),
        ("86400", LONGEST_S),
        ("9" * 5_000, LONGEST_S),
        (10**400, None),
        (A_DAY_AGO, 0.0),
        ("Tuesday, 14-Nov-23 22:14:20 GMT", 60.0),
        ("-1", None),
        (-1, None),
        (float("nan"), None),
        (float("inf"), LONGEST_S),
        (True, None),
        ("", None),
        ("soon", None),
        ("1e3", None),
        ("٣", None),
        ("Tue, 99 Nov 9999 99:99:99 GMT", None),
        ([], None),
        (b"7", None),
    ],
)
@pytest.mark.parametrize(
    "said",
    [
        lambda value: Told(retry_after_s=value),
        lambda value: Told(debug_info={"retry_after": value}),
        lambda value: Told(headers={"RETRY-AFTER": value}),
        lambda value: Told(response=Told(headers={"retry-after": value})),
        lambda value: Told(trailing_metadata=lambda: (("retry-after", value),)),
    ],
    ids=["attribute", "debug_info", "headers", "response", "grpc"],
)
def test_it_is_seconds_within_an_hour_or_nothing(said, value, expected):
    """What makes no sense is as good as nothing said."""
    assert retry_after_s(said(value), wall_ns=wall_ns) == expected


def test_what_it_was_made_from_is_asked_too():
    """By ``from``, by the way, or by Qdrant's ``source``; not beyond what was suppressed."""
    cause = Told(retry_after_s=5)
    try:
        try:
            raise cause
        except Told:
            raise ValueError from None
    except ValueError as exc:
        hidden = exc

    assert retry_after_s(Told(source=cause)) == 5.0
    assert retry_after_s(hidden) is None
    hidden.__cause__ = cause
    assert retry_after_s(hidden) == 5.0


def test_a_circle_of_causes_ends():
    """Exceptions that were made from one another are asked a few times, and no more."""
    one, other = Told(), Told()
    one.__cause__, other.__cause__ = other, one

    assert retry_after_s(one) is None


def test_it_never_raises():
    """Whatever an exception's attributes do when they are read."""

    class Trap(Exception):  # noqa: N818 - one of nobody's
        @property
        def response(self) -> Any:
            raise RuntimeError("read before it was there")

    assert retry_after_s(Trap()) is None
    assert retry_after_s(Told(headers=5, debug_info=5, trailing_metadata=5)) is None
