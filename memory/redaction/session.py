"""
One call's redaction: walks text and values of any depth, and counts what it replaced.

The walker makes new objects and never touches the caller's. Numbers, booleans and None pass; a type
it does not know raises `RedactionError`, since text might hide in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol

from ...telemetry.event import Redacted
from ..errors import RedactionError
from .cache import Cached
from .content import to_content
from .known import Known
from .walk import Rebuild, Walker


class Form(StrEnum):
    """
    What a text is, which decides how it is replaced.

    Attributes:
        TEXT: Free text: by operator.
        VALUE: By operator, but a pseudonym where it is one identifier as a whole.
        KEY: Always by pseudonyms, so that two keys stay two.
    """

    TEXT = "text"
    VALUE = "value"
    KEY = "key"


class Keeper(Protocol):
    """Who keeps what pseudonyms stand for, for one customer. Neither method waits or fails."""

    def keep(self, pseudonym: str, original: str, entity: str) -> None:
        """Keep that *pseudonym* stands for *original*."""
        ...

    def holds(self, pseudonyms: Iterable[str]) -> bool:
        """Tell whether all of *pseudonyms* were handed over lately."""
        ...


class Source(Protocol):
    """What redacts one string: the process's `Redactor`."""

    def redacted(
        self,
        text: str,
        *,
        known: Known,
        tenant: str | None,
        form: Form,
        keeper: Keeper | None = None,
    ) -> Cached:
        """Return *text* redacted, with what was replaced."""
        ...

    def all_pass(self, texts: Sequence[str], known: Known) -> bool:
        """Tell whether *texts* are ids in which nothing would be found, as most are."""
        ...


class Redaction:
    """
    What an adapter may do with a caller's arguments. One per call; not thread-safe.

    Attributes:
        counts: Replacements so far, by entity type (``EMAIL_ADDRESS``, ``PERSON``…).
    """

    __slots__ = ("_keeper", "_known", "_rebuild", "_source", "_tenant", "counts")

    def __init__(
        self,
        source: Source,
        tenant: str | None,
        known: Known,
        rebuild: Mapping[type, Rebuild],
        keeper: Keeper | None,
    ) -> None:
        self.counts: dict[str, int] = {}
        self._source = source
        self._tenant = tenant
        self._known = known
        self._keeper = keeper
        self._rebuild = rebuild

    def text(self, text: str, /) -> str:
        """Return *text* with personal data replaced. Free text: messages, queries, documents."""
        return self._replaced(text, Form.TEXT)

    def value(self, value: Any, /) -> Any:
        """
        Return a redacted copy of *value*.

        It may be a dict (keys are redacted too), list, tuple, set, str, number, date, UUID, enum,
        bytes, pydantic model or dataclass, at any depth.

        A string that is one identifier as a whole (``"ada@example.com"``) becomes a keyed
        pseudonym, stable within the tenant, rather than a tag: equality filters and dict keys keep
        their meaning and two customers never fall together.
        """
        return self._walker().walk(value)

    def iterate(self, items: Iterable[Any], /) -> Iterator[Any]:
        """Redact the items of a lazy iterable one by one, as the store pulls them."""
        return map(self._walker().walk, items)

    def label(self, text: str, /) -> str:
        """Return a name or id (collection, key, thread, agent) for use in sinks; see `value`."""
        return text if text in self._known.clean else self._replaced(text, Form.KEY)

    def labels(self, texts: tuple[str, ...], /) -> tuple[str, ...]:
        """Return names or ids for use in sinks, each as `label` does, for less."""
        if not texts or self._source.all_pass(texts, self._known):
            return texts
        return tuple(map(self.label, texts))

    def content(self, value: Any, /) -> Redacted:
        """Wrap *value*, redacted already, for sinks: JSON types, bounded in depth and size."""
        return to_content(value)

    def _walker(self) -> Walker:
        # Not kept: it holds us, and every call would leave a cycle for the collector to find.
        return Walker(text=self._value, key=self._key, rebuild=self._rebuild)

    def _value(self, text: str) -> str:
        return self._replaced(text, Form.VALUE)

    def _key(self, text: str) -> str:
        return self._replaced(text, Form.KEY)

    def _replaced(self, text: Any, form: Form) -> str:
        if not isinstance(text, str):
            raise RedactionError(f"expected text, not a {type(text).__qualname__}")
        result = self._source.redacted(
            text, known=self._known, tenant=self._tenant, form=form, keeper=self._keeper
        )
        for entity, count in result.counts:
            self.counts[entity] = self.counts.get(entity, 0) + count
        return result.text
