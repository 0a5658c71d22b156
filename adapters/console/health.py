"""The page *Health*: what the commands that look after the layer say, without waiting long."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from functools import partial
from typing import NamedTuple

from starlette.responses import Response
from starlette.routing import Route

from ...audit.queries.spending import Period, spending
from ...audit.queries.top_mover import PARTS, sentence
from ...audit.waiting import what_waits
from ...memory.building.opening import purposes_of
from ...memory.growth.report import GROWTH_HEADS, growth_report
from ...memory.journal.inspection import Inspection
from ...memory.settings import load_settings
from .sessions import Right
from .site import Site, Visit
from .tables import Table, cost
from .work import asked, told

_KEPT_S = 10.0
"""Seconds for which an answer is good enough: looking again asks no store again."""

_DAY_US = 86_400_000_000


class Section(NamedTuple):
    """One answer: lines, and a table."""

    lines: tuple[str, ...] = ()
    table: Table | None = None


Question = Callable[[], Section]


class Answers:
    """
    The latest answers to questions that may hang. Thread-safe.

    Args:
        answer_s: Seconds that all of them have together.
        clock: Seconds.
    """

    def __init__(self, answer_s: float, clock: Callable[[], float]) -> None:
        self._clock, self._answer_s = clock, answer_s
        self._asked: dict[str, tuple[float, Future[Section]]] = {}
        self._guard = threading.Lock()

    def to(self, questions: Mapping[str, Question]) -> dict[str, Section]:
        """Return an answer to each question; of one that is late or fails, that it is unknown."""
        futures = {name: self._future(name, question) for name, question in questions.items()}
        done, _late = wait(futures.values(), self._answer_s)
        late = Section((f"unknown: no answer within {self._answer_s:g} s",))
        return {name: _said(each) if each in done else late for name, each in futures.items()}

    def _future(self, name: str, question: Question) -> Future[Section]:
        with self._guard:
            at_s, future = self._asked.get(name, (0.0, None))
            # One thread a question at most: a store that hangs is not asked by a second one.
            if future is None or (future.done() and self._clock() - at_s >= _KEPT_S):
                future = asked(name, question)
                self._asked[name] = self._clock(), future
            return future


def _said(future: Future[Section]) -> Section:
    exc = future.exception()
    return future.result() if exc is None else Section((f"unknown: {told(exc)}",))


def routes(site: Site) -> list[Route]:
    """Return the route of the page."""
    answers = Answers(site.answer_s, site.clock)
    questions: dict[str, Question] = {
        "Doctor": partial(_doctor, site),
        "Queues": partial(_queues, site),
        "Journal": partial(_journal, site),
        "Spend by feature": partial(_spend, site),
        "Growth": partial(_growth, site),
    }

    def health(visit: Visit) -> Response:
        return visit.page("health.html", title="Health", sections=answers.to(questions))

    return [site.route("/health", health, needs=Right.SEE)]


def _doctor(site: Site) -> Section:
    if site.scope is not None:
        found = site.scope.health(site.answer_s / 2)
    elif site.environment_health is not None:
        found = site.environment_health()
    else:
        return Section(("unknown: this site has neither a scope nor settings to look at",))
    rows = [(each.state.value, each.name, each.detail) for each in found.checks]
    return Section((), Table("Doctor", ("state", "check", "detail"), rows))


def _queues(site: Site) -> Section:
    return Section(tuple(what_waits(site.log)) or ("Nothing waits for the audit trail.",))


def _journal(_site: Site) -> Section:
    path = load_settings().journal
    if path is None:
        return Section(("MNEMOSCOPE_JOURNAL is not set, so no write is kept.",))
    states = ("waiting", "set aside", "shadowed", "in doubt", "under way", "bytes")
    totals = Inspection(path, key=None).totals()
    if not totals:
        return Section((f"Nothing waits in {path}.",))
    # All but how old the oldest is, which the doctor says.
    rows = [(*each[:2], *(f"{count:,}" for count in each[2:-1])) for each in totals]
    return Section((), Table("Journal", ("store", "database", *states), rows))


def _spend(site: Site) -> Section:
    now_us = round(site.clock() * 1e6)
    period = Period(since_us=now_us - _DAY_US, until_us=now_us)
    with site.log.reading() as snapshot:
        found = spending(snapshot, ("feature",), period, tenant=site.tenant)
        parts = spending(snapshot, PARTS, period, tenant=site.tenant)
    rows = [
        (each.names[0] or "no feature", f"{each.now.tokens:,}", cost(each.now), cost(each.before))
        for each in found.lines
    ]
    heads = ("feature", "tokens", "cost", "the day before")
    return Section((sentence(parts),), Table("Spend of 24 hours", heads, rows))


def _growth(site: Site) -> Section:
    if site.scope is None:
        return Section(("unknown: this site has no stores. Serve it with --scope.",))
    settings = load_settings()
    found = growth_report(
        site.scope.subject_data.named(),
        purposes_of(site.log),
        limits=settings.growth_limits,
        path=settings.growth_file,
        at_s=site.clock(),
    )
    problems = filter(None, (*found.problems(), found.problem))
    return Section(tuple(problems), Table("Growth", GROWTH_HEADS, [*found.rows()]))
