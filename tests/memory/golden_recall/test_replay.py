"""`mnemoscope replay`: a worse candidate is found, the same one is not, and none is written to."""

from __future__ import annotations

import sys
import types

import pytest
from langgraph.store.memory import InMemoryStore

from mnemoscope.memory import context
from tests.kit.command_line import run
from tests.kit.patience import GIVE_UP_S

from .conftest import CUSTOMERS, QUERIES, TEXTS, embed_by_ends, search_all, store_of

RECALLS = len(CUSTOMERS) * len(QUERIES)


@pytest.fixture
def customers(tmp_path) -> str:
    """Return the path of a file with the customers' ids."""
    path = tmp_path / "customers"
    path.write_text("\n".join(CUSTOMERS))
    return str(path)


def test_the_same_store_is_without_a_finding(recorded, make_scope, replay):
    """Made anew, by another process of the application: all recalls, no difference."""
    candidate = make_scope()
    store = store_of(candidate)

    code, report, _said = replay(candidate, "--k", "3", "--fail-under", "1")

    assert code == 0
    assert report["recalls"] == RECALLS
    assert report["recall"] == {"on_record": 1.0, "candidate": 1.0}
    assert report["mrr"] == {"on_record": 1.0, "candidate": 1.0}
    assert report["findings"] == {}
    assert report["worst"] == []
    assert store is not None


REGRESSIONS = {
    "another embedder": {"embedder": embed_by_ends},
    "a lost index": {"embedder": None},
    "two of ten memories lost": {"texts": TEXTS[2:]},
}


@pytest.mark.parametrize("change", REGRESSIONS)
def test_a_planted_regression_is_found(recorded, make_scope, replay, change):
    """Exit code 1 below the wanted recall, and the worst recalls by their keyed ids."""
    candidate = make_scope()
    store = store_of(candidate, **REGRESSIONS[change])

    code, report, said = replay(candidate, "--k", "3", "--fail-under", "0.95")

    assert code == 1
    assert report["recall"]["candidate"] < 0.95
    assert report["findings"]["lost memories"] > 0
    assert "was wanted at least" in said
    lost = [each["lost"] for each in report["worst"]]
    assert 0 < len(lost) <= 20
    assert lost == sorted(lost, reverse=True)
    assert store is not None


def test_empties_are_counted(recorded, make_scope, replay, customers):
    """A recall that found something and finds nothing now is a finding of its own."""
    candidate = make_scope()
    store = store_of(candidate, texts=())

    _code, report, _said = replay(candidate, "--customers", customers)

    assert report["empty"] == {"on_record": 0, "candidate": RECALLS}
    assert report["findings"]["empty now"] == RECALLS
    assert store is not None


def test_without_a_wanted_recall_a_difference_is_shown_and_no_failure(recorded, make_scope, replay):
    """The exit code says whether the comparison was made."""
    candidate = make_scope()
    store = store_of(candidate, embedder=embed_by_ends)

    code, report, _said = replay(candidate, "--k", "3")

    assert code == 0
    assert report["findings"]
    assert store is not None


class _BrokenError(Exception):
    """A failure of the store's."""


def _down(texts):
    raise _BrokenError("which tea in the morning")


def test_a_failed_candidate_is_counted_and_never_good(recorded, make_scope, replay, customers):
    """Its error's name, nothing of its message; recall 0, and exit code 3 or 1."""
    candidate = make_scope()
    store = store_of(candidate, texts=(), embedder=_down)

    code, report, _said = replay(candidate, "--customers", customers)
    below, _report, _said = replay(candidate, "--customers", customers, "--fail-under", "0")

    assert (code, below) == (3, 3)
    assert report["recall"]["candidate"] == 0.0
    assert sum(report["errors"].values()) == report["findings"]["failed"] == RECALLS
    assert all("_BrokenError" in name for name in report["errors"])
    assert "tea" not in str(report)
    assert store is not None


def test_an_error_is_a_name(recorded, make_scope, replay):
    """Of a function or a client that raises: nothing of a message, which may quote a query."""
    candidate = make_scope()
    store = store_of(candidate)

    def search(query, _most):
        raise _BrokenError(query)

    code, report, _said = replay(search)
    wrong, refused, _said = replay(candidate, "--change", "tea=1")

    assert (code, wrong) == (3, 3)
    assert [*report["errors"].values()] == [*refused["errors"].values()] == [RECALLS]
    assert [*refused["errors"]] == ["TypeError"]
    assert not any(query in f"{report}{refused}" for query in ("tea", *QUERIES))
    assert store is not None


def test_a_neutral_result_is_a_failure(recorded, make_scope, replay):
    """A guard that answers with nothing in place of its store has found nothing out."""
    candidate = make_scope(deadline_recall_s=0.000_001)
    store = store_of(candidate)

    code, report, _said = replay(candidate)

    assert code == 3
    assert sum(report["errors"].values()) == RECALLS
    assert report["findings"].keys() == {"failed"}
    assert store is not None


def test_nothing_of_a_users_is_shown_without_a_flag(recorded, make_scope, replay, capsys):
    """Neither queries, nor customers, nor ids of memories; with it, redacted queries."""
    candidate = make_scope()
    store = store_of(candidate, embedder=embed_by_ends)

    _code, report, said = replay(candidate)
    _code, shown, _said = replay(candidate, "--content")
    run(["replay", "--against", "candidate_app:candidate"])
    printed = capsys.readouterr().out

    for text in (*QUERIES, *CUSTOMERS, "m-1"):
        assert text not in f"{report}{said}{printed}"
    assert {each["query"] for each in shown["worst"]} <= {*QUERIES}
    assert max(map(len, printed.splitlines())) <= 80
    assert "on redacted text" in printed
    assert store is not None


def test_recalls_of_a_replay_are_none_on_record(recorded, make_scope, replay):
    """A candidate that reports to the same trail: the next replay has as many recalls."""
    candidate = make_scope(sinks="audit")
    store = store_of(candidate)

    first = replay(candidate)[1]["recalls"]
    assert candidate.flush(GIVE_UP_S)
    second = replay(candidate)[1]["recalls"]

    assert first == second == RECALLS
    assert store is not None


def test_a_customer_whom_nobody_lists_is_said(recorded, make_scope, replay, customers):
    """A guarded client says whose its records are to its scope alone: a file of ids helps."""
    store = store_of(make_scope())

    code, report, _said = replay(store)
    helped, full, _said = replay(store, "--customers", customers)

    assert (code, report["recalls"]) == (3, 0)
    assert report["not_made_again"] == {"the candidate does not know the customer": RECALLS}
    assert (helped, full["recalls"], full["findings"]) == (0, RECALLS, {})


def test_a_customer_of_whom_all_is_lost_is_listed_by_the_application(
    recorded, make_scope, replay, monkeypatch
):
    """By the stores of ``--scope``: the candidate has nothing of theirs, and that is found."""
    candidate, application = make_scope(), make_scope()
    stores = store_of(candidate, texts=()), store_of(application)
    monkeypatch.setitem(sys.modules, "production", types.SimpleNamespace(scope=application))

    code, report, _said = replay(candidate, "--scope", "production:scope", "--fail-under", "0.95")

    assert code == 1
    assert report["findings"]["empty now"] == RECALLS
    assert all(stores)


class _Unlisted(InMemoryStore):
    """A store that finds, and does not list."""

    def list_namespaces(self, **_given):
        raise _BrokenError("c-42")

    def batch(self, ops):
        if any(type(each).__name__ == "ListNamespacesOp" for each in ops):
            raise _BrokenError("c-42")
        return super().batch(ops)


def test_a_store_that_does_not_list_is_said(recorded, make_scope, replay, tmp_path):
    """One line with an error's name; recalls are made for the customers that are known."""
    candidate = make_scope()
    store = candidate.store(_Unlisted(), customer_at=1)
    known = tmp_path / "one of two"
    known.write_text(CUSTOMERS[0])

    code, report, said = replay(candidate, "--customers", str(known))

    assert (code, report["recalls"]) == (3, len(QUERIES))
    assert sum(report["not_made_again"].values()) == RECALLS - len(QUERIES)
    assert len(said.splitlines()) == 1
    assert "langgraph.store: its records could not be listed" in said
    assert "_BrokenError" in said
    assert "c-42" not in said
    assert store is not None


def test_a_function_is_a_candidate(recorded, make_scope, replay):
    """Any search over any store: given the redacted query and how many are wanted."""
    store, asked = store_of(make_scope()), []

    def search(query, most):
        asked.append((query, most))
        with context(customer="c-42"):
            found = store.search(("memories", "c-42"), query=query, limit=most)
        return [each.key for each in found]

    code, report, _said = replay(search, "--k", "3")

    assert (code, report["findings"]) == (0, {})
    assert asked == [(query, 3) for query in QUERIES] * len(CUSTOMERS)


def test_a_store_that_the_candidate_lacks_is_said(recorded, make_scope, replay):
    """What was not made again is no good answer."""
    code, report, _said = replay(make_scope(), "--fail-under", "0")

    assert code == 1
    assert sum(report["not_made_again"].values()) == RECALLS


def test_recalls_without_text_or_answer_are_said(make_scope, replay):
    """A search by a vector or filter has no text on record, and a failed one no answer."""
    scope = make_scope(sinks="audit")
    store = store_of(scope)
    with context(tenant="acme", customer="c-42"):
        store.search(("memories", "c-42"), limit=3)
        store.get(("memories", "c-42"), "m-1")
    search_all(store)
    assert scope.flush(GIVE_UP_S)

    _code, report, _said = replay(scope)

    assert report["recalls"] == RECALLS
    assert report["not_made_again"] == {"no text of the query is on record": 2}


def test_without_the_key_nothing_is_read(recorded, monkeypatch, replay, tmp_path):
    """One line that names the setting, and nothing is made."""
    monkeypatch.delenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY")

    code, report, said = replay(None)

    assert (code, report) == (4, None)
    assert len(said.splitlines()) == 1
    assert "MNEMOSCOPE_AUDIT_PSEUDONYM_KEY" in said
    assert list(tmp_path.rglob("*.key")) == []


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--change", "threshold"], "--change takes NAME=JSON"),
        (["--since", "soon"], "--since takes an age"),
        (["--since", "1h", "--cases", "x"], "pass one of --since and --cases"),
    ],
)
def test_a_mistake_is_one_line(recorded, make_scope, replay, options, line):
    """Exit code 4, and nothing was made."""
    code, report, said = replay(make_scope(), *options)

    assert (code, report) == (4, None)
    assert line in said
    assert len(said.splitlines()) == 1
