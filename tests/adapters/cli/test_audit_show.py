"""``mnemoscope audit show``: what it answers, to a person and to a program."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from contextlib import closing

import pytest

from mnemoscope.adapters.cli.root import run
from mnemoscope.audit import AuditLog
from mnemoscope.memory.api import OperationClass, Redacted, Subject
from mnemoscope.telemetry.event.subject import SubjectKeys
from tests.kit.bundle_schema import wrong_by

SECRET = bytes(range(32))
ADA, TENANT = "ada@example.com", "acme"


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """Begin each test with no settings but the trail's, on a terminal of 80 columns."""
    for name in list(os.environ):
        if name.startswith("MNEMOSCOPE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_URL", f"sqlite:///{tmp_path}/audit.db")
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", SECRET.hex())


@pytest.fixture
def trail(environment, tmp_path, event_factory):
    """Have a small history: two writes, one changed since, a run that saw both, and Bob."""
    keys = SubjectKeys(SECRET)
    log = AuditLog(f"sqlite:///{tmp_path}/audit.db", keys)
    now_s = int(time.time())
    write = {"op_class": OperationClass.REMEMBER, "method": "add", "agent": "sales", "run": "r-0"}

    def at(ago_s, customer=ADA, **given):
        return event_factory(
            started_ns=(now_s - ago_s) * 10**9,
            subject=Subject(customer, tenant=TENANT, keys=keys),
            **given,
        )

    log.append(
        [
            at(90_000, memory_ids=("m1",), content=Redacted({"text": "likes tea"}), **write),
            at(300, memory_ids=("m2",), content=Redacted({"text": "has a dog"}), **write),
            at(200, run="r-1", memory_ids=("m1", "m2"), scores=(0.9, 0.5), hits=2),
            at(100, memory_ids=("m1",), content=Redacted({"text": "likes coffee"}), **write),
            at(50, customer="bob@example.com", memory_ids=("m9",), **write),
        ]
    )
    log.close()


@pytest.fixture
def log_of_two_tenants(trail, tmp_path, event_factory):
    """Have another tenant's run of the same name, too."""
    log = AuditLog(f"sqlite:///{tmp_path}/audit.db", SubjectKeys(SECRET))
    log.append([event_factory(writer_seq=99, run="r-1", tenant="globex", memory_ids=("m7",))])
    log.close()


@pytest.fixture
def show(trail, capfd):
    """Return how to run it: the exit code, what it printed, what it said beside."""

    def call(*arguments):
        code = run(["audit", "show", *arguments])
        printed = capfd.readouterr()
        return code, printed.out, printed.err

    return call


@pytest.fixture
def answer(show):
    """Return how to run it for a program."""

    def call(*arguments):
        code, out, _err = show("--json", *arguments)
        assert code == 0
        return json.loads(out)

    return call


WHO = ("--customer", ADA, "--tenant", TENANT)


class TestBrowsing:
    def test_a_customers_operations_come_oldest_first(self, answer):
        """All of theirs, and nobody else's."""
        found = answer(*WHO)

        assert [each["memories"][0]["memory_id"] for each in found] == ["m1", "m2", "m1", "m1"]

    def test_a_limit_keeps_the_newest(self, answer):
        """What happened last is what is asked for most."""
        (newest,) = answer(*WHO, "--limit", "1")

        assert newest["content"] == {"text": "likes coffee"}

    def test_since_leaves_out_what_is_older(self, answer):
        """By age, or by a time."""
        assert len(answer(*WHO, "--since", "1h")) == 3

    def test_a_memorys_operations_are_found_by_its_id(self, answer):
        """Who wrote it, who read it."""
        assert [each["class"] for each in answer("--memory", "m2")] == ["remember", "recall"]

    def test_without_a_question_it_tells_the_last_day(self, answer):
        """Of everybody, of one tenant, or of none."""
        assert len(answer()) == 4
        assert len(answer("--tenant", TENANT)) == 4
        assert answer("--tenant", "") == []

    @pytest.mark.parametrize("question", [(), ("--memory", "m2"), ("--run", "r-1")], ids=str)
    def test_of_a_tenant_that_nobody_knows_it_cannot_tell(self, show, question):
        """Nothing would be a false answer to a name that is mistyped."""
        code, out, err = show(*question, "--tenant", "ACME")

        assert (code, out) == (6, "")
        assert "cannot tell: no tenant of this name is known here" in err
        assert "known under another spelling: 'acme'" in err
        assert show(*question, "--tenant", "other")[0] == 6

    def test_a_runs_recalls_are_those_of_the_tenant(self, log_of_two_tenants, answer):
        """Two tenants may have runs of one name."""
        assert len(answer("--run", "r-1")) == 2
        assert len(answer("--run", "r-1", "--tenant", "globex")) == 1

    def test_a_person_sees_a_table_of_80_columns(self, show):
        """With what was done, and the words as they are stored."""
        code, out, _err = show(*WHO)

        assert code == 0
        assert max(len(line) for line in out.splitlines()) <= 80
        assert "wrote" in out
        assert "likes coffee" in out

    def test_a_person_reads_which_day_it_was(self, show, answer):
        """Once for each day, with its year: a trail goes back further than one."""
        lines = [line.strip() for line in show(*WHO)[1].splitlines()]

        days = dict.fromkeys(each["time"][:10] for each in answer(*WHO))
        assert len(days) > 1
        assert [line for line in lines if line in days] == [*days]

    def test_saves_of_one_conversation_are_one_line(self, show, trail, tmp_path, event_factory):
        """Half of a trail is what a graph saves of its steps; a program is told each."""
        subject = Subject(ADA, tenant=TENANT, keys=SubjectKeys(SECRET))
        saved = {"op_class": OperationClass.CHECKPOINT, "store": "langgraph.checkpoint"}
        now_ns = time.time_ns()
        with closing(AuditLog(f"sqlite:///{tmp_path}/audit.db", SubjectKeys(SECRET))) as log:
            log.append(
                [
                    event_factory(subject=subject, run=run, started_ns=now_ns + n, **saved)
                    for n, run in enumerate(["t-1"] * 306 + ["t-2"])
                ]
            )
        _code, out, _err = show(*WHO, "--limit", "400")

        (first, second) = (line for line in out.splitlines() if "saved" in line)
        assert "saved 306 times" in first
        assert "conversation t-1" in first
        assert "conversation t-2" in second
        assert len(json.loads(show(*WHO, "--limit", "400", "--json")[1])) == 4 + 307

    def test_nothing_found_is_said(self, show):
        """An empty table would be a riddle."""
        code, out, _err = show(*WHO, "--since", "0s")

        assert (code, "No operation is recorded" in out) == (0, True)


class TestAsOf:
    def test_it_is_what_was_remembered_then(self, answer):
        """Before the change, and after it."""
        then = answer(*WHO, "--as-of", "150s")
        now = answer(*WHO, "--as-of", "0s")

        assert [each["content"]["text"] for each in then] == ["likes tea", "has a dog"]
        assert [each["content"]["text"] for each in now] == ["likes coffee", "has a dog"]

    def test_a_person_is_told_the_moment(self, show):
        """With what was remembered, and since when."""
        code, out, _err = show(*WHO, "--as-of", "1h")

        assert code == 0
        assert "likes tea" in out
        assert "dog" not in out
        assert "→ 1 memory at" in out

    def test_what_was_only_used_to_answer_them_is_apart(
        self, show, answer, tmp_path, event_factory
    ):
        """A page of help is not about those who were shown it."""
        keys = SubjectKeys(SECRET)
        log = AuditLog(f"sqlite:///{tmp_path}/audit.db", keys)
        given = {"memory_ids": ("help",), "content": Redacted({"text": "Breakfast is at 8."})}
        write = event_factory(customer=None, op_class=OperationClass.REMEMBER, **given)
        read = event_factory(subject=Subject(ADA, tenant=TENANT, keys=keys), **given)
        log.append([write, read])
        log.close()

        *_remembered, used = answer(*WHO, "--as-of", "0s")
        _code, out, _err = show(*WHO, "--as-of", "0s")

        assert (used["memory_id"], used["relation"], used["times"]) == ("help", "used", 1)
        assert wrong_by("shown_memories")([used]) == []
        about, apart = out.split("Used to answer them")
        assert "Breakfast" in apart
        assert "Breakfast" not in about


class TestRun:
    def test_it_says_what_the_run_saw_and_where_it_came_from(self, answer):
        """Rank, score, origin, and the change since."""
        (recall,) = answer("--run", "r-1")

        first, second = recall["memories"]
        assert (first["rank"], first["score"]) == (1, 0.9)
        assert first["origin"]["agent"] == "sales"
        assert [each["content"]["text"] for each in first["since"]] == ["likes coffee"]
        assert second["since"] == []

    def test_a_person_reads_it_as_a_story(self, show):
        """In 80 columns, with the words that the run saw and not those of today."""
        _code, out, _err = show("--run", "r-1")

        text = " ".join(out.split())
        assert "1. score 0.900 likes tea" in text
        assert "by sales in r-0" in text
        assert "since then changed" in text
        assert max(len(line) for line in out.splitlines()) <= 80


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--as-of", "1h"), "--customer"),
        (("--memory", "m1", "--run", "r-1"), "--memory cannot be combined"),
        (("--customer", "x", "--run", "r", "--as-of", "1h"), "not both"),
        (("--customer", "x", "--as-of", "1h", "--since", "1h"), "--since has no meaning"),
        (("--since", "last week"), "--since takes an age"),
        (("--limit", "0"), "--limit"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(show, arguments, said):
    """In one line, with exit code 4."""
    code, out, err = show(*arguments)

    assert (code, out) == (4, "")
    assert said in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (WHO, "shown_operations"),
        ((*WHO, "--as-of", "1s"), "shown_memories"),
        (("--run", "r-1"), "shown_recalls"),
    ],
)
def test_what_a_program_reads_is_as_the_schema_says(answer, arguments, name):
    """The one that is shipped."""
    document = answer(*arguments)

    assert document
    assert wrong_by(name)(document) == []


def test_a_lost_key_is_no_empty_answer(show, monkeypatch):
    """Nobody can be found without it, which is not the same as nobody being there."""
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", bytes(32).hex())

    code, out, err = show(*WHO)

    assert (code, out) == (2, "")
    assert "key" in err


ABOUT_SOMEBODY = [
    ["show", "--customer", ADA],
    ["export", "--customer", ADA],
    ["blast-radius", "--memory", "m1"],
]


@pytest.mark.parametrize("command", ABOUT_SOMEBODY, ids=lambda each: each[0])
def test_an_answer_about_somebody_else_is_refused(trail, command, capfd, tmp_path, monkeypatch):
    """Identifiers that were swapped: exit code 1, and what does not fit."""
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect(tmp_path / "audit.db")) as connection, connection:
        rows = connection.execute("SELECT alias, subject_uid FROM audit_subject_alias").fetchall()
        (one, ones), (other, others) = rows[:2]
        change = "UPDATE audit_subject_alias SET subject_uid = ? WHERE alias = ?"
        connection.executemany(change, [(others, one), (ones, other)])

    assert run(["audit", *command]) == 1
    printed = capfd.readouterr()
    assert "rows of audit_subject_alias were changed" in printed.err
    assert (printed.out, [*tmp_path.glob("*.zip")]) == ("", [])
