"""``mnemoscope audit export``: the bundle, its exit codes, and what it says of what is missing."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from contextlib import closing
from textwrap import dedent

import pytest

from mnemoscope.adapters.cli.root import run
from mnemoscope.audit import AuditLog
from mnemoscope.audit.bundle.notice import ART_15, CONTROLLER
from mnemoscope.audit.bundle.verify import check
from mnemoscope.memory.api import OperationClass, Subject
from mnemoscope.telemetry.event.subject import SubjectKeys

SECRET = bytes(range(32))
EXPORT = ["audit", "export", "--tenant", "acme", "--customer"]

PARTS = {"controller": CONTROLLER, "art15": ART_15}

APPLICATION = """
    from langgraph.store.memory import InMemoryStore

    from mnemoscope.memory import Mnemoscope, context
    from mnemoscope.memory.api import Page
    from mnemoscope.memory.settings import load_settings


    def scope():
        scope = Mnemoscope(load_settings(sinks="audit"))
        store = scope.store(InMemoryStore(), customer_at=1)
        with context(tenant="acme", customer="grace"):
            store.put(("notes", "grace"), "n-1", {"text": "likes oolong"})
        return scope


    def with_two_tenants():
        scope = Mnemoscope(load_settings(sinks="audit"))
        store = scope.store(InMemoryStore(), customer_at=1)
        for tenant, words in ("acme", "likes oolong"), ("globex", "rides a gravel bike"):
            with context(tenant=tenant, customer="grace"):
                store.put(("notes", "grace"), f"of-{tenant}", {"text": words})
        return scope


    class Broken:
        store = "crm"
        title = "Contacts"
        unavailable = None

        async def page(self, subject, after=None):
            raise RuntimeError("the password of grace is swordfish")


    class Empty:
        store = "mem0"
        title = "Facts"
        unavailable = None

        async def page(self, subject, after=None):
            return Page(())


    def with_both_stores():
        made = scope()
        made.subject_data.add(Empty())
        return made


    def with_a_broken_store():
        made = scope()
        made.subject_data.add(Broken())
        return made
"""


@pytest.fixture
def trail(tmp_path, monkeypatch, event_factory):
    """An audit trail that holds one write for grace and one for bob, and is the configured one."""
    keys = SubjectKeys(SECRET)
    log = AuditLog(tmp_path / "audit.db", keys)
    people = {name: Subject(name, tenant="acme", keys=keys) for name in ("grace", "bob")}
    write = {"op_class": OperationClass.REMEMBER, "memory_ids": ("m-1",)}
    log.append([event_factory(subject=people[name], **write) for name in ("grace", "bob")])
    log.close()
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_URL", f"sqlite:///{tmp_path}/audit.db")
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", SECRET.hex())
    monkeypatch.delenv("MNEMOSCOPE_SCOPE", raising=False)
    monkeypatch.chdir(tmp_path)
    return log


@pytest.fixture
def application(trail, tmp_path, monkeypatch):
    """Return the name of a module that makes scopes."""
    name = f"application_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(dedent(APPLICATION))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("MNEMOSCOPE_PII_MODEL", "none")
    return name


def the_bundle(tmp_path):
    (path,) = tmp_path.glob("mnemoscope-export-*.zip")
    return path


def test_a_bundle_is_written_and_its_name_is_said(trail, tmp_path, capfd):
    """In this folder, of one customer alone, and it verifies."""
    run([*EXPORT, "grace"])

    path = the_bundle(tmp_path)
    printed = capfd.readouterr()
    assert f"{path.name}: 1 remembered now, 0 times looked up, 1 events" in printed.err
    assert printed.out == ""
    assert check(path).events == 1
    with zipfile.ZipFile(path) as archive:
        counts = json.loads(archive.read("manifest.json"))["counts"]
        page = archive.read("README.html").decode()
    assert (counts["memories"], counts["accesses"], counts["events"]) == (1, 0, 1)
    assert "<b>1</b>remembered now" in page
    assert "<b>0</b>times looked up" in page


def test_without_a_scope_the_log_alone_answers_and_says_so(trail, tmp_path, capfd):
    """Exit code 3: what the log alone can tell is not presented as the whole answer."""
    code = run([*EXPORT, "grace"])

    said = capfd.readouterr().err
    assert code == 3
    assert "from the audit log alone: the stores were not asked" in said
    assert "mem0: not asked" in said
    assert check(the_bundle(tmp_path)).code == 3


def test_with_a_scope_its_stores_answer(application, tmp_path, capfd):
    """What is remembered now, from the store itself; those that it lacks are named."""
    code = run([*EXPORT, "grace", "--scope", f"{application}:scope"])

    said = capfd.readouterr().err
    with zipfile.ZipFile(the_bundle(tmp_path)) as archive:
        lines = [json.loads(line) for line in archive.read("memories.jsonl").splitlines()]
    assert [(line["source"], line["store"]) for line in lines] == [
        ("store", "langgraph.store"),
        ("log", "mem0"),
    ]
    assert "likes oolong" in str(lines[0]["content"])
    assert code == 3  # mem0 is in the log, and not in this scope
    assert "langgraph.store" not in said


def test_a_store_that_fails_is_named_and_its_message_is_not(application, tmp_path, capfd):
    """Exit code 3; the error by its type."""
    code = run([*EXPORT, "grace", "--scope", f"{application}:with_a_broken_store"])

    said = capfd.readouterr().err
    assert code == 3
    assert "crm: failed (RuntimeError)" in said
    assert "swordfish" not in said


class TestAnIdInTwoTenants:
    """A store knows no tenants, so that whose its records of that id are cannot be told."""

    def test_what_may_be_somebody_elses_is_in_no_bundle(self, application, tmp_path, capfd):
        """What the log knows to be theirs is; the answer is incomplete, and says why."""
        code = run([*EXPORT, "grace", "--scope", f"{application}:with_two_tenants"])

        said, path = capfd.readouterr().err, the_bundle(tmp_path)
        with zipfile.ZipFile(path) as archive:
            whole = b"".join(map(archive.read, archive.namelist()))
            memories = [json.loads(line) for line in archive.read("memories.jsonl").splitlines()]
            incomplete = json.loads(archive.read("manifest.json"))["incomplete"]
        assert code == 3
        assert b"gravel bike" not in whole
        assert b"globex" not in whole
        assert [(each["source"], each["id"]) for each in memories] == [
            ("log", "of-acme"),
            ("log", "m-1"),
        ]
        assert "known under tenant globex too" in said
        assert "langgraph.store: was not asked (it cannot tell whose" in incomplete[0]

    @pytest.mark.parametrize(
        "arguments",
        [
            [*EXPORT, "grace", "--own-stores"],
            ["audit", "export", "--customer", "grace", "--any"],
        ],
        ids=["the stores are this tenant's", "both are one person"],
    )
    def test_whoever_asks_may_say_whose_it_is(self, arguments, application, tmp_path, capfd):
        """Then the stores answer in full."""
        run([*arguments, "--scope", f"{application}:with_two_tenants"])

        with zipfile.ZipFile(the_bundle(tmp_path)) as archive:
            memories = [json.loads(line) for line in archive.read("memories.jsonl").splitlines()]
        stored = [each["id"] for each in memories if each["source"] == "store"]
        assert sorted(stored) == ["of-acme", "of-globex"]
        assert "tell no tenants apart" not in capfd.readouterr().err


@pytest.mark.parametrize("out", ["grace.zip", "."])
def test_out_is_a_file_or_a_folder(trail, tmp_path, out):
    """A folder gets a file of its own name."""
    run([*EXPORT, "grace", "--out", str(tmp_path / out)])

    assert len(list(tmp_path.glob("*.zip"))) == 1


def test_json_goes_to_standard_output(trail, tmp_path, capfd):
    """For scripts: where it is, how much, and what is missing."""
    run([*EXPORT, "grace", "--json"])

    found = json.loads(capfd.readouterr().out)
    assert found["path"] == the_bundle(tmp_path).name
    assert (found["events"], found["complete"], found["from_log_alone"]) == (1, False, True)
    assert found["stores"] == [
        {"name": "mem0", "status": "not_configured", "n_memories": 1, "error": None}
    ]


def test_portability_and_notice_reach_the_bundle(trail, tmp_path):
    """Only what can be taken elsewhere; and what the operator has to say."""
    notice = tmp_path / "notice.json"
    notice.write_text(json.dumps({"controller": {"name": "North"}, "art15": {"retention": "1 y"}}))
    run([*EXPORT, "grace", "--portability", "--notice", str(notice)])

    with zipfile.ZipFile(the_bundle(tmp_path)) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    assert manifest["request_type"] == "portability"
    assert manifest["controller"] == {"name": "North", "contact": None, "dpo": None}
    assert manifest["art15"]["retention"] == "1 y"


def test_what_only_the_controller_knows_is_asked_for(application, tmp_path, capfd):
    """Without it exit code 3, with what is missing by name; with it 0. Both bundles say so."""
    scope = ["--scope", f"{application}:with_both_stores"]
    code = run([*EXPORT, "grace", *scope, "--out", str(tmp_path / "without.zip")])
    said = capfd.readouterr().err
    assert code == check(tmp_path / "without.zip").code == 3
    assert "not stated, for want of --notice: controller.name, controller.contact" in said

    notice = tmp_path / "notice.json"
    stated = {name: dict.fromkeys(names, "x") for name, names in PARTS.items()}
    notice.write_text(json.dumps(stated))
    with_notice = ["--notice", str(notice), "--out", str(tmp_path / "with.zip")]
    code = run([*EXPORT, "grace", *scope, *with_notice])
    assert code == check(tmp_path / "with.zip").code == 0
    assert "incomplete" not in capfd.readouterr().err


def test_that_it_was_asked_is_in_the_trail(trail, tmp_path):
    """Requested and completed, with how much, and without who."""
    run([*EXPORT, "grace"])

    with closing(sqlite3.connect(tmp_path / "audit.db")) as connection:
        found = connection.execute(
            "SELECT operation, header FROM audit_event "
            "WHERE operation LIKE 'privacy.%' ORDER BY seq"
        ).fetchall()
    assert [name for name, _header in found] == [
        "privacy.export.requested",
        "privacy.export.completed",
    ]
    data = json.loads(found[1][1])["data"]
    assert (data["n_events"], data["complete"], data["stores"]) == (
        1,
        False,
        {"mem0": "not_configured"},
    )
    assert "grace" not in str(found)


def test_a_lost_key_is_an_error_and_no_empty_bundle(trail, tmp_path, capfd, monkeypatch):
    """Nobody is found without it, which is not the same as nobody being there."""
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", bytes(32).hex())
    code = run([*EXPORT, "grace"])

    assert code == 2
    assert "another pseudonym key" in capfd.readouterr().err
    assert not list(tmp_path.glob("*.zip"))


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--notice", "no.json"], 2, "no.json"),
        (["--notice", "audit.db"], 4, "is not JSON"),
        (["--notice", "list.json"], 4, "expected an object with controller, art15, subject"),
        (["--notice", "odd.json"], 4, "unknown in controller: nmae; expected name, contact, dpo"),
        (["--out", "no/such/x.zip"], 2, "No such file"),
        (["--scope", "nonsense"], 4, "package.module:name"),
        (["--audit-url", "sqlite:////no/where"], 3, "there is no"),
    ],
)
def test_a_mistake_ends_in_one_line_and_leaves_no_file(
    trail, tmp_path, capfd, arguments, code, said
):
    """What is wrong, the documented exit code, and nothing written."""
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "odd.json").write_text('{"controller": {"nmae": "North"}}')
    ended = run([*EXPORT, "grace", *arguments])

    error = capfd.readouterr().err
    assert (ended, len(error.splitlines())) == (code, 1)
    assert said in error
    assert not list(tmp_path.glob("*.zip"))
    assert not list(tmp_path.glob(".*.zip*"))


def test_a_trail_that_can_only_be_read_is_exported(trail, tmp_path, capfd, monkeypatch):
    """That it could not be recorded is said; the customer gets the answer."""

    def refuse(*_args):
        from mnemoscope.audit import AuditError

        raise AuditError("the audit database is read-only")

    monkeypatch.setattr(AuditLog, "append_log_event", refuse)
    run([*EXPORT, "grace"])

    assert "could not be recorded in the trail" in capfd.readouterr().err
    assert check(the_bundle(tmp_path)).events == 1
