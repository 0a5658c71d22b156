"""A customer of a tenant that moved when shards were added: their export, and their erasure."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from textwrap import dedent

import pytest

from mnemoscope.audit import UnknownSubjectError
from mnemoscope.memory import context
from mnemoscope.memory.api import OperationClass
from tests.kit.command_line import run
from tests.kit.remains import found_in
from tests.kit.sharded_trails import TENANTS

ADA, BOB = "customer-ada", "customer-bob"
WORDS = {ADA: "likes marzipan with her porridge", BOB: "likes liquorice in his tea"}
APPLICATION = """
    import sqlite3
    from pathlib import Path

    from langgraph.store.sqlite import SqliteStore

    from mnemoscope.memory import Mnemoscope
    from mnemoscope.memory.settings import load_settings

    opened = []

    def application():
        connection = sqlite3.connect(
            Path(__file__).parent / "store.db", check_same_thread=False, isolation_level=None
        )
        opened.append(connection)
        bare = SqliteStore(connection)
        bare.setup()
        scope = Mnemoscope(load_settings())
        return scope, scope.store(bare, customer_at=1)

    def scope():
        return application()[0]
"""


@pytest.fixture
def application(sharded, monkeypatch):
    """Return an application's module, whose store is in a file."""
    name = f"sharded_{os.getpid()}_{abs(hash(sharded.folder))}"
    (sharded.folder / f"{name}.py").write_text(dedent(APPLICATION))
    monkeypatch.chdir(sharded.folder)
    monkeypatch.setattr(sys, "path", [str(sharded.folder), *sys.path])
    monkeypatch.setenv("MNEMOSCOPE_PII_MODEL", "none")
    monkeypatch.setenv("MNEMOSCOPE_SINKS", "audit")
    module = __import__(name)
    yield module
    for each in module.opened:
        each.close()


@pytest.fixture
def remember(application, monkeypatch):
    """Return what has a process that writes so many shards remember something of both."""

    def remembered(shards, tenant):
        monkeypatch.setenv("MNEMOSCOPE_AUDIT_SHARDS", str(shards))
        scope, store = application.application()
        for customer, words in WORDS.items():
            with context(tenant=tenant, customer=customer):
                store.put(("profiles", customer), f"of-{shards}", {"text": words})
        scope.close(30)

    return remembered


@pytest.fixture
def moved(sharded, remember):
    """Return a tenant that moved, with both customers' events in two of four shards."""
    sharded.write(4, TENANTS, customer="somebody")
    shards = [{each.tenant for each in log.rows()} for log in sharded.log().shards]
    tenant = min(shards[2])
    remember(1, tenant)
    remember(4, tenant)
    return tenant


def test_an_export_is_a_bundle_of_each_shard(sharded, application, moved, tmp_path, capsys):
    """In one folder, with a manifest over them; and each can be verified alone."""
    out = tmp_path / "out.zip"
    chosen = ["--customer", ADA, "--tenant", moved, "--scope", f"{application.__name__}:scope"]

    code = run(["audit", "export", *chosen, "--out", str(out), "--json"])

    document = json.loads(capsys.readouterr().out)
    listed = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert code == 3  # nobody has stated what only a controller knows
    assert [each["events"] for each in document["bundles"]] == [1, 1]
    assert listed["bundles"] == document["bundles"]
    assert [run(["audit", "verify", "--bundle", each["path"]]) for each in listed["bundles"]] == [
        3,
        3,
    ]
    assert found_in([tmp_path / "out"], WORDS[BOB]) == set()


def test_an_erasure_is_of_all_shards(sharded, application, moved, tmp_path, capsys):
    """Each has its proof and receipt, all still verify, and the other customer keeps theirs."""
    chosen = ["--customer", ADA, "--tenant", moved, "--scope", f"{application.__name__}:scope"]

    code = run(["audit", "erase", *chosen, "--yes", "--receipt", str(tmp_path), "--json"])

    document = json.loads(capsys.readouterr().out)
    assert code == 0
    assert [each["details"] for each in document["shards"]] == [1, 1]
    assert all((tmp_path / each["receipt"]).exists() for each in document["shards"])
    with pytest.raises(UnknownSubjectError):
        sharded.log().person(ADA, moved)
    assert len([*sharded.log().history(BOB, moved)]) == 2
    assert run(["audit", "verify"]) == 0
    assert found_in([each.path for each in sharded.log().shards], WORDS[ADA], ADA) == set()


def test_what_was_done_by_id_alone_in_another_shard_is_erased_too(
    sharded, application, moved, event_factory
):
    """Though nothing there names them: it is known by what they wrote elsewhere."""
    theirs = {"tenant": moved, "store": "langgraph.store", "op_class": OperationClass.REMEMBER}
    wrote = next(each for each in sharded.log().history(ADA, moved) if each.memories)
    theirs |= {"collection": wrote.collection, "memory_ids": (wrote.memories[0].memory_id,)}
    with closing(sharded.log(4)) as log:
        log.append([event_factory(customer=None, **theirs)])
    chosen = ["--customer", ADA, "--tenant", moved, "--scope", f"{application.__name__}:scope"]

    assert run(["audit", "erase", *chosen, "--yes"]) == 0
    left = [each for each in sharded.log().shards[2].rows() if each.subject_uid and each.memories]
    assert [each.tenant for each in left if each.store == "langgraph.store"] == [moved]
    assert run(["audit", "verify"]) == 0


@pytest.mark.long
def test_an_erasure_that_stopped_between_two_shards_goes_on(sharded, application, moved, capsys):
    """It says how many are done; the next run erases the rest, and has no more to do then."""
    chosen = ["--customer", ADA, "--tenant", moved, "--scope", f"{application.__name__}:scope"]
    with closing(sqlite3.connect(sharded.log().shards[2].path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        assert run(["audit", "erase", *chosen, "--yes"]) != 0
        assert "1 of 2 shards are done" in capsys.readouterr().err

    assert run(["audit", "erase", *chosen, "--yes"]) == 0
    assert run(["audit", "erase", *chosen, "--yes"]) == 6


def test_two_processes_that_erase_at_once_leave_nothing(sharded, application, moved):
    """Whoever is first in a shard; the other does nothing more, or the same."""
    program = (
        "import sys; from mnemoscope.adapters.cli.root import run; sys.exit(run(sys.argv[1:]))"
    )
    chosen = ["--customer", ADA, "--tenant", moved, "--scope", f"{application.__name__}:scope"]
    erasing = [
        subprocess.Popen(
            [sys.executable, "-c", program, "audit", "erase", *chosen, "--yes"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(2)
    ]
    said = [each.communicate() for each in erasing]

    assert 0 in [each.returncode for each in erasing], said
    with pytest.raises(UnknownSubjectError):
        sharded.log().person(ADA, moved)
    assert run(["audit", "verify"]) == 0


def test_one_id_in_two_tenants_of_two_shards_is_two_people(sharded, remember, capsys):
    """Each shard knows one of them: together they are several, and nobody is taken for another."""
    sharded.write(4, TENANTS, customer="somebody")
    shards = [min({each.tenant for each in log.rows()}) for log in sharded.log().shards]
    remember(4, shards[1])
    remember(4, shards[2])

    assert run(["audit", "show", "--customer", ADA]) == 5
    assert sharded.log().person(ADA, shards[1]).shared_with == (shards[2],)
