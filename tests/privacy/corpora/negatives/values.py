"""Values that stand in texts and reach nobody: ids, hashes, times, versions, amounts, codes."""

from __future__ import annotations

import base64
import string
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from random import Random
from uuid import UUID

from tests.privacy.corpora.document import Half

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_BEGIN = {
    Half.DEVELOPMENT: datetime(2017, 1, 1, tzinfo=UTC),
    Half.EVALUATION: datetime(2023, 1, 1, tzinfo=UTC),
}
_OFFSETS_MINUTES = (0, 60, 120, 180, 330, 420, 540, -180, -300, -420)

MAKERS = frozenset(
    {"b64", "base32", "digits", "ean", "epoch", "hex", "hexup", "int", "isbn", "lat", "lon"}
    | {"money", "num", "time", "token", "ulid", "uuid", "version", "word"}
)
"""What has a maker here; all other values are words."""


class Values:
    """
    Makes the values of one text.

    Args:
        random: Where they come from.
        half: Its times are of other years than the other's.
        words: Lists of words by name, for what has no maker here.
    """

    def __init__(self, random: Random, half: Half, words: Mapping[str, Sequence[str]]) -> None:
        self.random = random
        self._half = half
        self._words = words
        self._made: dict[tuple[str, str, str], str] = {}

    def make(self, name: str, argument: str, *, same_as: str | None) -> str:
        """Return a value; the one made before for the same *same_as*, where that is given."""
        if same_as is None:
            return self._new(name, argument)
        key = (name, argument, same_as)
        if key not in self._made:
            self._made[key] = self._new(name, argument)
        return self._made[key]

    def _new(self, name: str, argument: str) -> str:
        if name in MAKERS:
            return getattr(self, f"_{name}")(argument)
        return self.random.choice(self._words[name])

    def _some(self, alphabet: str, count: str) -> str:
        return "".join(self.random.choices(alphabet, k=int(count)))

    def _uuid(self, _: str) -> str:
        return str(UUID(int=self.random.getrandbits(128), version=4))

    def _ulid(self, _: str) -> str:
        return "01" + self._some(_CROCKFORD, "24")

    def _hex(self, count: str) -> str:
        return self._some("0123456789abcdef", count)

    def _hexup(self, count: str) -> str:
        return self._some("0123456789ABCDEF", count)

    def _b64(self, count: str) -> str:
        return base64.b64encode(self.random.randbytes(int(count))).decode()

    def _token(self, count: str) -> str:
        return self._some(string.ascii_letters + string.digits, count)

    def _base32(self, count: str) -> str:
        """Return lower-case letters and digits, as in the names of pods."""
        return self._some("bcdfghjklmnpqrstvwxz2456789", count)

    def _digits(self, count: str) -> str:
        return self._some(string.digits, count)

    def _int(self, limits: str) -> str:
        low, high = map(int, limits.split("-"))
        return str(self.random.randint(low, high))

    def _num(self, limits: str) -> str:
        """Return a number: ``0-99-2`` has two decimals."""
        low, high, decimals = map(int, limits.split("-"))
        return f"{self.random.uniform(low, high):.{decimals}f}"

    def _money(self, limits: str) -> str:
        """Return an amount with commas between thousands."""
        low, high = map(int, limits.split("-"))
        return f"{self.random.uniform(low, high):,.2f}"

    def _version(self, parts: str) -> str:
        return ".".join(str(self.random.randint(0, 40)) for _ in range(int(parts or 3)))

    def _moment(self) -> datetime:
        span_s = int(timedelta(days=3 * 365).total_seconds())
        moment = _BEGIN[self._half] + timedelta(seconds=self.random.uniform(0, span_s))
        return moment.astimezone(timezone(timedelta(minutes=self.random.choice(_OFFSETS_MINUTES))))

    def _time(self, style: str) -> str:
        """Return a time in a style of `strftime`, of which ``%L`` is milliseconds."""
        moment = self._moment()
        return moment.strftime(style.replace("%L", f"{moment.microsecond // 1000:03}"))

    def _epoch(self, decimals: str) -> str:
        """Return seconds since 1970, with so many digits after them and no point."""
        digits = int(decimals or 0)
        return f"{self._moment().timestamp():.0f}" + self._some(string.digits, str(digits))

    def _isbn(self, _: str) -> str:
        return self._with_check_digit("978" + self._some(string.digits, "9"))

    def _ean(self, _: str) -> str:
        return self._with_check_digit("4" + self._some(string.digits, "11"))

    def _with_check_digit(self, code: str) -> str:
        weighed = sum(int(digit) * (3 if index % 2 else 1) for index, digit in enumerate(code))
        return code + str(-weighed % 10)

    def _lat(self, _: str) -> str:
        return f"{self.random.uniform(-60, 70):.5f}"

    def _lon(self, _: str) -> str:
        return f"{self.random.uniform(-180, 180):.5f}"

    def _word(self, words: str) -> str:
        """Return one of the words that are given, with bars between."""
        return self.random.choice(words.split("|"))
