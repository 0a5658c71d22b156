"""Whose data a command is about: who is found, the exit codes, and that reading makes no key."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from textwrap import dedent

import pytest

from mnemoscope.adapters.cli.root import run
from mnemoscope.audit import AuditLog
from mnemoscope.audit.bundle.notice import ART_15, CONTROLLER
from mnemoscope.memory import context
from mnemoscope.memory.api import OperationClass, Redacted, Subject
from mnemoscope.telemetry.event.subject import SubjectKeys
from tests.kit.patience import GIVE_UP_S

SECRET = bytes(range(32))
APPLICATION = """
    from langgraph.store.memory import InMemoryStore

    from mnemoscope.memory import Mnemoscope, load_settings

    store = InMemoryStore()


    def scope():
        made = Mnemoscope(load_settings(sinks="audit"))
        made.store(store, customer_at=1)
        return made


    def elsewhere():
        return Mnemoscope(load_settings(sinks="audit", audit_url="sqlite:///elsewhere.db"))
"""
AT_IMPORT = """
    from mnemoscope.memory import configure

    scope = configure()
"""
EMBEDDED = """
    from qdrant_client import QdrantClient, models

    from mnemoscope.memory import Mnemoscope, context, load_settings

    scope = Mnemoscope(load_settings(sinks="audit"))
    qdrant = scope.qdrant(QdrantClient(path="points"), owner_key="user_id")
    if not qdrant.collection_exists("notes"):
        size = models.VectorParams(size=2, distance=models.Distance.COSINE)
        qdrant.create_collection("notes", vectors_config=size)
    with context(tenant="acme", customer="c-42"):
        point = models.PointStruct(id=1, vector=[1.0, 0.0], payload={"user_id": "c-42"})
        qdrant.upsert("notes", [point])
"""


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """Begin with no settings but the trail's, in an application's folder."""
    for name in list(os.environ):
        if name.startswith(("MNEMOSCOPE_", "OTEL_", "LANGSMITH_", "LANGCHAIN_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_URL", f"sqlite:///{tmp_path}/audit.db")
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", SECRET.hex())
    monkeypatch.setenv("MNEMOSCOPE_PII_MODEL", "none")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    notice = {"controller": dict.fromkeys(CONTROLLER, "x"), "art15": dict.fromkeys(ART_15, "x")}
    (tmp_path / "notice.json").write_text(json.dumps(notice))
    monkeypatch.setenv("MNEMOSCOPE_NOTICE", str(tmp_path / "notice.json"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def application(tmp_path, monkeypatch):
    """Return a module of the application."""
    import importlib

    name = f"asked_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(dedent(APPLICATION))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module(name)
    sys.modules.pop(name, None)


@pytest.fixture
def trail(environment, event_factory):
    """Return a function that has somebody's operation recorded."""
    keys = SubjectKeys(SECRET)
    log = AuditLog("sqlite:///audit.db", keys)

    def record(customer="c-42", tenant="acme", **given):
        defaults = {"op_class": OperationClass.REMEMBER, "content": Redacted({"text": "tea"})}
        subject = Subject(customer, tenant=tenant, keys=keys)
        log.append([event_factory(subject=subject, tenant=tenant, **(defaults | given))])

    record("somebody-else")
    yield record
    log.close()


@pytest.fixture
def mnemoscope(capfd):
    """Return how to run a command: its exit code, what it printed, what it said beside."""

    def call(*arguments):
        code = run(list(arguments))
        printed = capfd.readouterr()
        return code, printed.out, printed.err

    return call


def options(command, application):
    """Return what a command needs besides a customer."""
    scope = ["--scope", f"{application.__name__}:scope"]
    return {"show": [], "export": scope, "erase": [*scope, "--yes"]}[command]


@pytest.fixture(params=["show", "export", "erase"])
def ask(request, application, mnemoscope):
    """Return how to ask each of the commands for a customer."""

    def call(customer, *arguments):
        more = options(request.param, application)
        return mnemoscope("audit", request.param, "--customer", customer, *more, *arguments)

    return call


class TestWithoutATenant:
    def test_found_under_one_it_is_that_one_and_it_is_said(self, trail, ask):
        """As the README has it: written under a tenant, asked for without."""
        trail(store="langgraph.store")
        code, _out, err = ask("c-42")

        assert code == 0
        assert "found in tenant acme" in err

    def test_found_under_several_nothing_is_done(self, trail, ask, tmp_path):
        """Exit code 5; they are listed, with what to pass."""
        trail()
        trail(tenant="globex")
        code, out, err = ask("c-42")

        assert (code, out) == (5, "")
        assert "tenant acme: 'c-42'\n  tenant globex: 'c-42'\n" in err
        assert "--tenant NAME" in err
        assert not list(tmp_path.glob("*.zip"))

    @pytest.mark.parametrize("resolved", [["--tenant", "globex"], ["--any"], ["--any", "--exact"]])
    def test_that_can_be_resolved(self, trail, ask, resolved):
        """By naming one, or by taking all for one person."""
        trail(store="langgraph.store")
        trail(tenant="globex", store="langgraph.store")

        assert ask("c-42", *resolved)[0] == 0

    def test_a_receipt_names_all_tenants_that_were_erased(
        self, trail, mnemoscope, application, tmp_path
    ):
        """Not the first of them alone."""
        trail(store="langgraph.store")
        trail(tenant="globex", store="langgraph.store")
        mnemoscope("audit", "erase", "--customer", "c-42", "--any", *options("erase", application))

        (receipt,) = tmp_path.glob("mnemoscope-receipt-*.zip")
        with zipfile.ZipFile(receipt) as archive:
            told = json.loads(archive.read("manifest.json"))["subject"]["tenant"]
            page = archive.read("RECEIPT.txt").decode()
        assert told == "acme and globex"
        assert "acme and globex" in page

    def test_found_nowhere_it_cannot_tell(self, trail, ask, tmp_path):
        """Exit code 6: never an empty bundle, never an erasure."""
        code, out, err = ask("c-43")

        assert (code, out) == (6, "")
        assert "cannot tell: nobody of this name is known here" in err
        assert not list(tmp_path.glob("*.zip"))

    def test_a_mistyped_tenant_is_found_nowhere(self, trail, ask):
        """And the right one is told."""
        trail()
        code, _out, err = ask("c-42", "--tenant", "acne")

        assert code == 6
        assert "tenant acme: 'c-42'" in err

    def test_another_spelling_is_told(self, trail, ask):
        """With exit code 6, since nobody of this very name is known."""
        trail(customer="Ada Example")
        code, _out, err = ask("ada example ")

        assert code == 6
        assert "known under other spellings or tenants:\n  tenant acme: 'Ada Example'" in err

    def test_another_spelling_is_used_if_that_is_wanted(self, trail, ask):
        """And said."""
        trail(customer="Ada Example", store="langgraph.store")
        code, _out, err = ask("ada example", "--any")

        assert code == 0
        assert "another spelling is included: 'Ada Example'" in err

    def test_two_spellings_are_two_people_until_somebody_decides(self, trail, ask):
        """Exit code 5; ``--exact`` leaves the other one out."""
        trail(customer="Ada", store="langgraph.store")
        trail(customer="ADA", store="langgraph.store")

        assert ask("Ada")[0] == 5
        assert ask("Ada", "--exact")[0] == 0

    @pytest.mark.parametrize(
        ("chosen", "runs"),
        [
            (["--any"], {"acme Ada", "acme ADA", "globex Ada"}),
            (["--any", "--tenant", "acme"], {"acme Ada", "acme ADA"}),
            (["--any", "--exact"], {"acme Ada", "globex Ada"}),
            (["--exact", "--tenant", "acme"], {"acme Ada"}),
        ],
    )
    def test_tenants_and_spellings_are_chosen_apart(self, trail, mnemoscope, chosen, runs):
        """An answer has what was chosen, and nothing else."""
        for tenant, customer in (("acme", "Ada"), ("acme", "ADA"), ("globex", "Ada")):
            trail(customer=customer, tenant=tenant, run=f"{tenant} {customer}")
        code, out, _err = mnemoscope("audit", "show", "--customer", "Ada", *chosen, "--json")

        assert code == 0
        assert {each["run"] for each in json.loads(out)} == runs


class TestStores:
    def test_whom_a_store_knows_is_known(self, trail, application, mnemoscope):
        """Though the trail does not: they were there before it, or it was pruned."""
        application.store.put(("notes", "c-7"), "n", {"text": "tea"})
        code, out, err = mnemoscope(
            *("audit", "export", "--customer", "c-7", "--json"),
            *options("export", application),
        )

        assert code == 0
        assert json.loads(out)["memories"] == 1
        assert json.loads(out)["person"]["in_log"] is False
        assert "found in live stores alone" in err

    def test_what_a_store_has_in_another_spelling_is_told(self, trail, application, mnemoscope):
        """The trail knows one, the store two."""
        trail(customer="ada")
        application.store.put(("notes", "Ada"), "n", {"text": "tea"})
        code, _out, err = mnemoscope(
            *("audit", "erase", "--customer", "ada"), *options("erase", application)
        )

        assert code == 5
        assert "'Ada'" in err

    def test_somebody_elses_records_are_not_theirs(self, trail, application, mnemoscope):
        """A store's records of an id are those of the tenant in which the trail knows it."""
        trail(tenant="globex")
        application.store.put(("notes", "c-42"), "n", {"text": "tea"})
        code, _out, _err = mnemoscope(
            *("audit", "export", "--customer", "c-42", "--tenant", "acme"),
            *options("export", application),
        )

        assert code == 6

    def test_two_ids_of_one_person_are_one_answer(self, trail, application, mnemoscope, tmp_path):
        """Of the trail and of every store."""
        for name in ("c-42", "ada"):
            trail(customer=name, store="langgraph.store")
            application.store.put(("notes", name), name, {"text": "tea"})
        code, out, _err = mnemoscope(
            *("audit", "export", "--customer", "c-42", "--also", "ada", "--json"),
            *options("export", application),
        )

        document = json.loads(out)
        with zipfile.ZipFile(tmp_path / document["path"]) as bundle:
            lines = [json.loads(each) for each in bundle.read("memories.jsonl").splitlines()]
        assert (code, document["events"]) == (0, 2)
        assert sorted(line["id"] for line in lines) == ["ada", "c-42"]

    def test_two_ids_of_one_person_are_erased_together(self, trail, application, mnemoscope):
        """Everywhere; others stay."""
        for name in ("c-42", "ada", "somebody-else"):
            trail(customer=name, store="langgraph.store")
            application.store.put(("notes", name), "n", {"text": f"{name} likes tea"})
        arguments = ["--customer", "c-42", "--also", "ada"]
        code, _out, _err = mnemoscope("audit", "erase", *arguments, *options("erase", application))

        assert code == 0
        assert application.store.get(("notes", "ada"), "n") is None
        assert application.store.get(("notes", "somebody-else"), "n") is not None
        assert mnemoscope("audit", "show", "--customer", "ada")[0] == 6
        assert mnemoscope("audit", "show", "--customer", "somebody-else")[0] == 0


class TestErasingTheUnknown:
    def test_the_stores_are_swept_if_that_is_wanted(self, trail, application, mnemoscope):
        """And still it cannot be told whether anybody was forgotten."""
        code, out, _err = mnemoscope(
            *("audit", "erase", "--customer", "c-43", "--even-if-unknown"),
            *options("erase", application),
        )

        said = " ".join(out.split())
        assert code == 6
        assert "Cannot tell: nobody of this name is known." in said
        assert "Erased everywhere" not in said

    def test_a_program_is_told_too(self, trail, application, mnemoscope):
        """It is not complete."""
        _code, out, _err = mnemoscope(
            *("audit", "erase", "--customer", "c-43", "--even-if-unknown", "--json"),
            *options("erase", application),
        )

        document = json.loads(out)
        assert (document["complete"], document["person"]["known"]) == (False, False)

    def test_in_doubt_nothing_is_erased(self, trail, application, mnemoscope):
        """Of a log of an earlier release; ``--exact`` says that there is no other id."""
        trail(store="langgraph.store")
        tables = AuditLog("sqlite:///audit.db", SubjectKeys(SECRET)).tables
        with tables.writing() as (connection, head):
            connection.execute("UPDATE audit_subject_alias SET folded = NULL, sealed = NULL")
            tables.note(connection, head, "subject.linked", {"id_type": "email"})
        arguments = ["audit", "erase", "--customer", "c-42", *options("erase", application)]
        code, _out, err = mnemoscope(*arguments)

        assert code == 3
        assert "Nothing was changed" in err
        assert mnemoscope(*arguments, "--exact")[0] == 0


class TestTheTrail:
    @pytest.mark.parametrize(
        "arguments",
        [
            ["spend"],
            ["audit", "show"],
            ["audit", "show", "--customer", "c-42"],
            ["audit", "export", "--customer", "c-42"],
            ["audit", "verify"],
            ["audit", "export", "--customer", "c-42", "--scope", "SCOPE"],
            ["audit", "erase", "--customer", "c-42", "--yes", "--scope", "SCOPE"],
        ],
        ids=lambda each: " ".join(each[:2]),
    )
    @pytest.mark.parametrize("key", [True, False], ids=["key", "no key"])
    def test_one_that_is_not_there_is_the_same_in_all_commands(
        self, application, mnemoscope, monkeypatch, tmp_path, arguments, key
    ):
        """Exit code 3, and nothing is made: neither a database nor a key."""
        scope = f"{application.__name__}:scope"
        if not key and "SCOPE" not in arguments:
            monkeypatch.delenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY")
        code, out, err = mnemoscope(*(scope if each == "SCOPE" else each for each in arguments))

        assert (code, out) == (3, "")
        assert f"there is no audit database at {tmp_path}/audit.db" in err
        assert not (tmp_path / "audit.db").exists()
        assert not (tmp_path / "data" / "mnemoscope" / "subject.key").exists()

    @pytest.mark.parametrize(
        ("is_there", "code", "missing"), [(False, 3, "audit database"), (True, 4, "pseudonym key")]
    )
    @pytest.mark.parametrize("command", [["export"], ["erase", "--yes"]], ids=["export", "erase"])
    def test_an_application_that_configures_as_it_is_imported_is_told_what_is_missing(
        self, mnemoscope, monkeypatch, tmp_path, request, command, is_there, code, missing
    ):
        """As others are, and not where in its code that was found."""
        name = f"at_import_{tmp_path.name}"
        (tmp_path / f"{name}.py").write_text(dedent(AT_IMPORT))
        monkeypatch.syspath_prepend(str(tmp_path))
        if is_there:
            request.getfixturevalue("trail")
        monkeypatch.delenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY")
        ended, _out, err = mnemoscope(
            "audit", *command, "--customer", "c-42", "--scope", f"{name}:scope"
        )

        assert ended == code
        assert err.startswith(f"mnemoscope: there is no {missing} at")

    @pytest.mark.parametrize(
        ("arguments", "code"),
        [
            (["spend"], 4),
            (["audit", "show"], 4),
            (["audit", "export", "--customer", "c-42"], 4),
            (["audit", "export", "--customer", "c-42", "--scope", "SCOPE"], 4),
            (["audit", "erase", "--customer", "c-42", "--yes", "--scope", "SCOPE"], 4),
            (["doctor", "--scope", "SCOPE"], 4),
            (["audit", "verify"], 3),
        ],
        ids=lambda each: " ".join(each[:2]) if isinstance(each, list) else "",
    )
    def test_reading_makes_no_key(
        self, trail, application, mnemoscope, monkeypatch, tmp_path, arguments, code
    ):
        """It says that there is none, and what to do; what needs none is verified."""
        monkeypatch.delenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY")
        scope = f"{application.__name__}:scope"
        ended, _out, err = mnemoscope(*(scope if each == "SCOPE" else each for each in arguments))

        assert ended == code
        assert "Restore that file" in err or code == 3
        assert not list((tmp_path / "data").rglob("*.key"))

    def test_erase_takes_its_address(self, trail, application, mnemoscope, monkeypatch, tmp_path):
        """As every other command of the trail does."""
        trail(store="langgraph.store")
        monkeypatch.setenv("MNEMOSCOPE_AUDIT_URL", f"sqlite:///{tmp_path}/other.db")
        url = ["--audit-url", f"sqlite:///{tmp_path}/audit.db"]
        code, _out, _err = mnemoscope(
            *("audit", "erase", "--customer", "c-42", *url), *options("erase", application)
        )

        assert code == 0
        assert os.environ["MNEMOSCOPE_AUDIT_URL"].endswith("other.db")

    def test_a_scope_with_another_trail_is_refused(self, trail, application, mnemoscope, tmp_path):
        """Else another trail than the one that was named would answer."""
        url = ["--audit-url", f"sqlite:///{tmp_path}/audit.db"]
        scope = ["--scope", f"{application.__name__}:elsewhere"]
        code, _out, err = mnemoscope("audit", "erase", "--customer", "c-42", "--yes", *url, *scope)

        assert code == 4
        assert "nothing was done" in err


def test_a_day_is_whole(trail, mnemoscope):
    """``--as-of`` a day means its end: what was written on it is remembered."""
    noon_ns = 1_772_366_400 * 10**9  # 2026-03-01T12:00Z
    trail(started_ns=noon_ns, memory_ids=("m",))
    asked = ["audit", "show", "--customer", "c-42", "--json", "--as-of"]

    found = {day: json.loads(mnemoscope(*asked, day)[1]) for day in ("2026-02-28", "2026-03-01")}
    assert [len(each) for each in found.values()] == [0, 1]
    assert json.loads(mnemoscope(*asked, "2026-03-01T00:00")[1]) == []


def test_a_moment_is_told(trail, mnemoscope):
    """The last second of that day."""
    trail(memory_ids=("m",))
    _code, out, _err = mnemoscope("audit", "show", "--customer", "c-42", "--as-of", "2026-03-01")

    assert "at 2026-03-01 23:59:59 UTC" in " ".join(out.split())


def test_what_was_written_under_a_tenant_is_found_without(application, mnemoscope, capfd):
    """The README's own lines, from the guarded store to the erasure."""
    scope = application.scope()
    store = scope.store(application.store, customer_at=1)
    with context(tenant="acme", customer="c-42", agent="sales", purpose="reply"):
        store.put(("notes", "c-42"), "likes", {"text": "oolong in the morning"})
    scope.close()
    ask = ["--customer", "c-42", *options("export", application)]

    exported = mnemoscope("audit", "export", "--json", *ask)
    erased = mnemoscope("audit", "erase", "--yes", *ask)
    shown = mnemoscope("audit", "show", "--customer", "c-42", "--tenant", "acme")

    document = json.loads(exported[1])
    assert (exported[0], document["events"], document["memories"]) == (0, 1, 1)
    assert erased[0] == 0
    assert application.store.get(("notes", "c-42"), "likes") is None
    assert shown[0] == 6


@pytest.mark.parametrize("command", ["export", "erase"])
@pytest.mark.long
def test_an_embedded_client_ends_without_a_traceback(tmp_path, command):
    """Qdrant's own cannot be closed any more when the interpreter ends."""
    (tmp_path / "embedded.py").write_text(dedent(EMBEDDED))
    program = "from mnemoscope.adapters.cli.root import main; main()"
    arguments = ["audit", command, "--customer", "c-42", "--scope", "embedded:scope"]
    folders = filter(None, [os.environ.get("PYTHONPATH"), str(tmp_path)])
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments, *(["--yes"] if command == "erase" else [])],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        capture_output=True,
        text=True,
        timeout=GIVE_UP_S,
        check=False,
    )

    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
