"""Evaluation sets: out of production, and only what a human approved counts."""

from __future__ import annotations

import io
import json
import sqlite3
import sys
from contextlib import closing
from hashlib import sha256

import ir_measures
import pytest
from ir_measures import RR, R
from msgspec import structs

from mnemoscope.memory.golden_recall import (
    CaseFileError,
    GoldenCase,
    ReviewSeals,
    case_lines,
    read_cases,
    trec_files,
)
from tests.kit.command_line import run

from .conftest import CUSTOMERS, QUERIES, store_of

RECALLS = len(CUSTOMERS) * len(QUERIES)


class _Terminal(io.StringIO):
    """Standard input of somebody at a terminal."""

    def isatty(self):
        return True


@pytest.fixture
def collected(recorded, tmp_path):
    """Return the file of the recalls on record."""
    file = tmp_path / "set.jsonl"
    assert run(["evaluation", "collect", str(file)]) == 0
    return file


@pytest.fixture
def review(collected, monkeypatch):
    """Return a function that answers the command's questions."""

    def reviewed(answers):
        monkeypatch.setattr(sys, "stdin", _Terminal("\n".join(answers) + "\n"))
        return run(["evaluation", "review", str(collected), "--approved-by", "m.j."])

    return reviewed


def test_a_set_is_collected_once(recorded, collected, capsys):
    """Redacted recalls, one a line, for their owner alone to read; a second time adds none."""
    before = collected.read_text()

    code = run(["evaluation", "collect", str(collected)])

    assert code == 0
    assert "0 of them new" in capsys.readouterr().out
    assert collected.read_text() == before
    assert collected.stat().st_mode & 0o077 == 0
    assert len(read_cases(collected)) == RECALLS
    assert all(each not in before for each in CUSTOMERS)


def test_nothing_counts_before_a_human_has_approved_it(recorded, collected, make_scope, replay):
    """A set without reviews measures nothing, and says so."""
    code, report, said = replay(make_scope(), "--cases", str(collected))

    assert (code, report) == (3, None)
    assert f"{RECALLS}: a human has not approved it as it is" in said


def test_only_approved_recalls_count(recorded, collected, review, make_scope, replay):
    """Two approved, one rejected, one skipped, then the reviewer quits."""
    candidate = make_scope()
    store = store_of(candidate)

    assert review(["y", "n", "s", "y", "q"]) == 0
    code, report, said = replay(candidate, "--cases", str(collected), "--k", "3")

    assert (code, report["recalls"], report["findings"]) == (0, 2, {})
    assert report["not_made_again"] == {
        "a human has rejected it": 1,
        "a human has not approved it as it is": RECALLS - 3,
    }
    assert said == ""
    by = {each.review.approved_by for each in read_cases(collected) if each.review}
    assert by == {"m.j."}
    assert store is not None


def test_a_review_is_in_the_trail(recorded, collected, review, tmp_path):
    """Counts and the hash of the file, sealed, about nobody."""
    assert review(["y", "y", "n", "q"]) == 0

    with closing(sqlite3.connect(tmp_path / "audit.db")) as database:
        headers = database.execute("SELECT header FROM audit_event WHERE kind = 'log'").fetchall()
    found = [each for (header,) in headers if "set_sha256" in (each := json.loads(header))["data"]]
    digest = sha256(collected.read_bytes()).hexdigest()
    assert [each["data"] for each in found] == [
        {"approved": 2, "rejected": 1, "set_sha256": digest}
    ]
    assert run(["audit", "verify"]) == 0


@pytest.mark.parametrize("change", ["query", "answer", "relevant", "reviewer"])
def test_what_changes_after_its_approval_counts_no_more(
    recorded, collected, review, make_scope, replay, change
):
    """Whoever edits the file cannot approve: each approval is sealed with the key."""
    assert review(["y", "q"]) == 0
    first, *others = collected.read_text().splitlines()
    case = json.loads(first)
    if change == "query":
        case["content"]["query"] = "another"
    elif change == "answer":
        case["found"] = case["found"][:1]
    elif change == "relevant":
        case["relevant"] = ["m-9"]
    else:
        case["review"]["approved_by"] = "somebody else"
    collected.write_text("\n".join([json.dumps(case), *others]))

    code, report, said = replay(make_scope(), "--cases", str(collected))

    assert (code, report) == (3, None)
    assert f"{RECALLS}: a human has not approved it as it is" in said


def test_relevant_memories_are_the_measure_where_a_set_has_them(
    recorded, make_scope, replay, tmp_path
):
    """By evidence, not by the answer on record: both answers are held against it."""
    seals = ReviewSeals(recorded.audit.ring.current.key("golden_recall"))
    file, source = tmp_path / "judged.jsonl", tmp_path / "all.jsonl"
    assert run(["evaluation", "collect", str(source)]) == 0
    judged = [
        seals.reviewed(
            structs.replace(each, relevant=("m-0", "m-5")),
            approved=True,
            by="evidence",
            at="2026-01-01",
        )
        for each in read_cases(source)
        if each.query == QUERIES[0]
    ]
    file.write_text("".join(case_lines(judged)))
    candidate = make_scope()
    store = store_of(candidate)

    _code, report, _said = replay(candidate, "--cases", str(file), "--k", "2")

    assert report["recall"] == {"on_record": 0.5, "candidate": 0.5}
    assert report["findings"] == {}
    assert store is not None


def test_a_set_is_exported_as_the_field_reads_it(collected, review, tmp_path):
    """TREC's qrels and run, read by `ir_measures`: the answers on record are their own measure."""
    assert review(["y"] * RECALLS) == 0
    folder = tmp_path / "trec"

    assert run(["evaluation", "export", str(collected), str(folder), "--k", "3"]) == 0

    assert all(each.stat().st_mode & 0o077 == 0 for each in folder.iterdir())
    qrels = ir_measures.read_trec_qrels(str(folder / "qrels.txt"))
    run_ = ir_measures.read_trec_run(str(folder / "run.txt"))
    found = ir_measures.calc_aggregate([R @ 3, RR], qrels, run_)
    queries = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    assert {str(name): value for name, value in found.items()} == {"R@3": 1.0, "RR": 1.0}
    assert {each["text"] for each in queries} == {*QUERIES}


def test_ids_with_spaces_stay_one_word():
    """TREC's forms are separated by white space."""
    case = GoldenCase(id="c", store="s", method="m", content={}, found=("a b%", "ü"))

    files = trec_files([case], 10)

    assert files["qrels.txt"] == "c 0 a%20b%25 1\nc 0 %C3%BC 1\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("milk, eggs", "line 1 is no recall on record"),
        ('{"id": "secret"}', "line 1 is no recall on record"),
        ("{0}\n\n{0}", "line 3 has the id of an earlier line"),
    ],
)
def test_a_file_that_is_no_set_is_one_line(tmp_path, trail, recorded, capsys, text, line):
    """The number of the line, and nothing that is in it."""
    case = GoldenCase(id="secret", store="s", method="m", content={}, found=())
    [written] = case_lines([case])
    file = tmp_path / "set.jsonl"
    file.write_text(text.replace("{0}", written.strip()))

    code = run(["replay", "--against", "json:loads", "--cases", str(file)])

    said = capsys.readouterr().err
    assert code == 2
    assert line in said
    assert "secret" not in said
    assert len(said.splitlines()) == 1
    with pytest.raises(CaseFileError):
        read_cases(file)


def test_a_case_shows_its_id_alone():
    """In logs and in the output of tests."""
    case = GoldenCase(id="ab", store="s", method="m", content={"query": "q-1"}, found=("m-1",))

    assert repr(case) == "GoldenCase(ab)"


def test_without_a_terminal_nobody_reviews(collected, capsys):
    """A script cannot approve."""
    before = collected.read_text()

    code = run(["evaluation", "review", str(collected), "--approved-by", "cron"])

    assert code == 4
    assert "there is no terminal" in capsys.readouterr().err
    assert collected.read_text() == before
