"""A recall on record, a human's review of it, and the file of both: one JSON object a line."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import msgspec

_encode = msgspec.json.Encoder(order="deterministic").encode


class Review(msgspec.Struct, frozen=True, kw_only=True):
    """
    The decision of a human about a case.

    Attributes:
        approved: Whether the case counts.
        approved_by: The human, as they name themselves.
        approved_at: ISO 8601, UTC.
        seal: Keyed hash of the case and of this decision: no other case counts by it.
    """

    approved: bool
    approved_by: str
    approved_at: str
    seal: str = ""


class GoldenCase(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    One recall on record, redacted as it was stored. Its `repr` shows its id alone.

    Attributes:
        id: Keyed hash of its event, 16 hex digits.
        store: The store's name in events.
        method: The client's method.
        content: The arguments that are on record, redacted, of JSON types.
        found: Ids of the answer, the best first, as events have them.
        scores: One per id, in the store's own measure; empty where it does not rank.
        collection: The store's own grouping, redacted.
        tenant: The organisation, redacted.
        owner: The customer as the trail numbers them. None: the recall named none.
        latency_s: Seconds that its caller waited.
        cost_usd: Cost of the model calls inside of it. None: none is on record.
        relevant: Ids that answer the query, by a human or a data set. None: the recorded answer
            is the measure.
        review: None: nobody has looked at it.
    """

    id: str
    store: str
    method: str
    content: dict[str, Any]
    found: tuple[str, ...]
    scores: tuple[float, ...] = ()
    collection: str | None = None
    tenant: str | None = None
    owner: str | None = None
    latency_s: float = 0.0
    cost_usd: float | None = None
    relevant: tuple[str, ...] | None = None
    review: Review | None = None

    def __repr__(self) -> str:
        """Return the id: the content may be personal data that redaction did not find."""
        return f"GoldenCase({self.id})"

    @property
    def query(self) -> str | None:
        """The text that was searched for. None: there is none on record, as of a bare vector."""
        return _text_under("query", self.content)

    def measure(self, k: int) -> tuple[str, ...]:
        """Return the ids that an answer is held against: the relevant ones, or the first *k*."""
        return self.found[:k] if self.relevant is None else self.relevant


class ReviewSeals:
    """
    Makes and checks the seals of reviews.

    Args:
        key: 32 bytes, of the application's secret.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def reviewed(self, case: GoldenCase, *, approved: bool, by: str, at: str) -> GoldenCase:
        """Return *case* with a sealed review in place of any other."""
        review = Review(approved=approved, approved_by=by, approved_at=at)
        sealed = msgspec.structs.replace(review, seal=self._seal(case, review))
        return msgspec.structs.replace(case, review=sealed)

    def counts(self, case: GoldenCase) -> bool:
        """Return whether *case* was approved, and neither it nor the review changed since."""
        review = case.review
        return (
            review is not None
            and review.approved
            and hmac.compare_digest(review.seal, self._seal(case, review))
        )

    def _seal(self, case: GoldenCase, review: Review) -> str:
        # The review is sealed with the case: who approved is as much of it as what was approved.
        bare = msgspec.structs.replace(case, review=msgspec.structs.replace(review, seal=""))
        return hmac.digest(self._key, _encode(bare), "sha256").hex()


class CaseFileError(ValueError):
    """A line of a file is no case. The message has the line's number and quotes nothing of it."""


def read_cases(path: Path) -> list[GoldenCase]:
    """
    Return the cases in a file.

    Raises:
        OSError: It cannot be read.
        CaseFileError: A line is no case, or two have one id.
    """
    cases: dict[str, GoldenCase] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        # Its own messages may quote a value, which may be somebody's.
        try:
            case = msgspec.json.decode(line, type=GoldenCase)
        except (msgspec.MsgspecError, UnicodeError):
            raise CaseFileError(
                f"line {number} is no recall on record: expected one JSON object a line, as "
                "mnemoscope replay collect writes them"
            ) from None
        # The later one would stand for both, and its review for a recall that nobody looked at.
        if case.id in cases:
            raise CaseFileError(f"line {number} has the id of an earlier line: remove one of them")
        cases[case.id] = case
    return list(cases.values())


def case_lines(cases: Iterable[GoldenCase]) -> Iterator[str]:
    """Yield the lines of a file of *cases*."""
    for case in cases:
        yield _encode(case).decode() + "\n"


def trec_files(cases: Sequence[GoldenCase], k: int) -> dict[str, str]:
    """
    Return an evaluation set in the forms of the field, by the names of its files.

    ``queries.jsonl`` is as BEIR has it, ``qrels.txt`` and ``run.txt`` as TREC has them: the measure
    of each case, and the answer on record. Ids are percent-encoded where they hold white space.
    """
    queries = [_encode({"_id": each.id, "text": each.query or ""}).decode() for each in cases]
    qrels = [f"{case.id} 0 {_word(each)} 1" for case in cases for each in case.measure(k)]
    run = [
        f"{case.id} Q0 {_word(each)} {rank} {score!r} recorded"
        for case in cases
        for rank, (each, score) in enumerate(_scored(case), 1)
    ]
    files = {"queries.jsonl": queries, "qrels.txt": qrels, "run.txt": run}
    return {name: "".join(f"{line}\n" for line in lines) for name, lines in files.items()}


def _scored(case: GoldenCase) -> Iterator[tuple[str, float]]:
    scores: Sequence[float] = case.scores
    if len(scores) != len(case.found):
        # TREC's tools rank by score, and where a store has none by nothing else.
        scores = [1 / rank for rank in range(1, len(case.found) + 1)]
    return zip(case.found, scores, strict=True)


def _word(memory_id: str) -> str:
    # Keys of LangGraph's stores are any text, and TREC's columns end at a space.
    return quote(memory_id, safe="!#$&'()*+,-./:;<=>?@[]_~")


def _text_under(name: str, value: Any) -> str | None:
    """Return the first text under *name* at any depth."""
    nested: Iterable[Any] = ()
    if isinstance(value, Mapping):
        held = cast("Mapping[str, Any]", value)
        if isinstance(text := held.get(name), str):
            return text
        nested = held.values()
    elif isinstance(value, list):
        nested = cast("Sequence[Any]", value)
    return next((text for each in nested if (text := _text_under(name, each)) is not None), None)
