"""``mnemoscope audit erase`` with real stores: nothing of a customer is left in any file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path
from textwrap import dedent
from zipfile import ZipFile

import pytest

from mnemoscope.adapters.cli.root import run
from mnemoscope.memory import Mnemoscope, context
from mnemoscope.memory.journal.journal import look
from tests.kit.patience import GIVE_UP_S
from tests.kit.remains import found_in

ADA, BOB, TENANT = "customer-ada", "customer-bob", "acme"
WORDS = {ADA: "likes marzipan with her porridge", BOB: "likes liquorice in his tea"}

APPLICATION = """
    import sqlite3
    from pathlib import Path

    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.store.sqlite import SqliteStore
    from qdrant_client import QdrantClient, models

    from mnemoscope.demo.embedded_mem0 import embedded_memory
    from mnemoscope.memory import Mnemoscope
    from mnemoscope.memory.settings import load_settings

    HERE = Path(__file__).parent / "stores"


    class Application:
        def __init__(self):
            HERE.mkdir(exist_ok=True)
            self.scope = Mnemoscope(load_settings())
            self.bare = embedded_memory(HERE)
            self.client = QdrantClient(path=str(HERE / "qdrant"))
            self.tables = [connection("store.db"), connection("threads.db")]
            for each in self.tables:  # as it is in most builds of SQLite
                each.execute("PRAGMA secure_delete = OFF")
            store = SqliteStore(self.tables[0])
            store.setup()
            self.memory = self.scope.mem0(self.bare)
            self.qdrant = self.scope.qdrant(self.client, owner_key="user_id")
            self.store = self.scope.store(store, customer_at=1)
            self.saver = self.scope.checkpointer(SqliteSaver(self.tables[1]))
            graph = StateGraph(MessagesState)
            graph.add_node("say", lambda state: {"messages": []})
            graph.add_edge(START, "say")
            self.graph = graph.compile(checkpointer=self.saver)

        def remember(self, customer, words, number):
            self.memory.add(words, user_id=customer, infer=False)
            if not self.client.collection_exists("notes"):
                size = models.VectorParams(size=2, distance=models.Distance.COSINE)
                self.client.create_collection("notes", vectors_config=size)
            payload = {"user_id": customer, "text": words}
            point = models.PointStruct(id=number, vector=[1.0, 0.0], payload=payload)
            self.qdrant.upsert("notes", [point])
            self.store.put(("profiles", customer), "last", {"text": words})
            config = {"configurable": {"thread_id": f"thread-{number}"}}
            self.graph.invoke({"messages": [("user", words)]}, config)

        def close(self):
            self.scope.close()
            self.bare.close()
            self.bare.vector_store.client.close()
            self.client.close()
            for each in self.tables:
                each.close()


    def connection(name):
        return sqlite3.connect(HERE / name, check_same_thread=False, isolation_level=None)


    made = []


    def scope():
        made.append(Application())
        return made[-1].scope
"""


@pytest.fixture(autouse=True)
def application(monkeypatch, tmp_path):
    """Be in an application's folder, with its settings, its module on the path."""
    for name in list(os.environ):
        if name.startswith(("MNEMOSCOPE_", "OTEL_", "LANGSMITH_", "LANGCHAIN_")):
            monkeypatch.delenv(name)
    folder = tmp_path / "application"
    folder.mkdir()
    name = f"erasing_{os.getpid()}_{abs(hash(tmp_path))}"
    (folder / f"{name}.py").write_text(dedent(APPLICATION))
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    for variable, value in {
        "XDG_DATA_HOME": tmp_path / "data",
        "MNEMOSCOPE_PII_MODEL": "none",
        "MNEMOSCOPE_SINKS": "logs,audit,prometheus",
        "MNEMOSCOPE_AUDIT_URL": f"sqlite:///{tmp_path}/audit.db",
        "MNEMOSCOPE_LOG_FILE": tmp_path / "app.jsonl",
        "MNEMOSCOPE_VAULT": tmp_path / "vault.db",
        "MNEMOSCOPE_JOURNAL": tmp_path / "journal",
        "MNEMOSCOPE_AUDIT_PSEUDONYM_KEY": "00112233445566778899aabbccddeeff",
    }.items():
        monkeypatch.setenv(variable, str(value))
    yield name
    module = sys.modules.pop(name, None)
    for each in getattr(module, "made", ()):
        each.close()


@pytest.fixture
def module(application):
    """Return the application's module."""
    import importlib

    return importlib.import_module(application)


@pytest.fixture
def remembered(module):
    """Have two customers remembered everywhere, by an application that has ended since."""
    made = module.Application()
    for number, (customer, words) in enumerate(WORDS.items(), 1):
        with context(tenant=TENANT, customer=customer):
            made.remember(customer, words, number)
    made.scope.flush(GIVE_UP_S)
    made.close()
    return made


@pytest.fixture
def erase(application, capfd):
    """Return how to run it: the exit code, what it printed, what it said beside."""

    def call(*arguments, customer=ADA, scope=True):
        given = ["--scope", f"{application}:scope"] if scope else []
        code = run(
            ["audit", "erase", "--customer", customer, "--tenant", TENANT, *given, *arguments]
        )
        printed = capfd.readouterr()
        return code, printed.out, printed.err

    return call


class TestErasing:
    def test_nothing_is_left_in_any_file(self, remembered, erase, tmp_path):
        """Vectors, history, messages, points, items, threads, logs, journal, vault, the trail."""
        folders = [tmp_path]
        stores = tmp_path / "application" / "stores"
        assert found_in([stores / "memories"], *WORDS.values()) == set(WORDS.values())
        assert found_in([stores / "mem0-history.db"], *WORDS.values()) == set(WORDS.values())
        assert found_in([stores / "qdrant"], *WORDS.values()) == set(WORDS.values())
        assert found_in(stores.glob("store.db*"), *WORDS.values()) == set(WORDS.values())
        assert found_in(stores.glob("threads.db*"), *WORDS.values()) == set(WORDS.values())

        code, out, _err = erase("--yes", "--json")

        document = json.loads(out)
        assert (code, document["complete"]) == (0, True)
        assert found_in(folders, *WORDS.values()) == {WORDS[BOB]}
        removed = {each["name"]: each["removed"] for each in document["stores"]}
        assert removed == {
            "mem0": 2,
            "qdrant": 1,
            "langgraph.store": 1,
            "langgraph.checkpoint": 1,
        }
        assert document["searched_texts"] > 2

    def test_nothing_of_them_is_in_the_metrics(self, remembered, erase):
        """No label ever had it; with the control that the customer's operations are counted."""
        from prometheus_client import generate_latest

        erase("--yes")
        metrics = generate_latest().decode()

        assert "mnemoscope_operation_duration_seconds_count" in metrics
        assert not [each for each in (ADA, "marzipan") if each in metrics]

    def test_the_other_customer_is_still_remembered(self, remembered, erase, module):
        """In every store."""
        erase("--yes")
        (made,) = module.made

        found = made.bare.get_all(filters={"user_id": BOB})["results"]
        assert [each["memory"] for each in found] == [WORDS[BOB]]
        assert made.client.count("notes").count == 1
        assert made.store.get(("profiles", BOB), "last").value == {"text": WORDS[BOB]}
        assert made.graph.get_state({"configurable": {"thread_id": "thread-2"}}).values["messages"]
        assert not made.graph.get_state({"configurable": {"thread_id": "thread-1"}}).values

    def test_a_write_that_waits_in_the_journal_is_forgotten(
        self, remembered, erase, module, tmp_path
    ):
        """Made again after the erasure, it would bring back what was forgotten."""
        made = module.Application()
        made.bare.vector_store.insert = _away
        with context(tenant=TENANT, customer=ADA):
            made.memory.add("also likes nougat on Sundays", user_id=ADA, infer=False)
        made.close()
        kept = look(tmp_path / "journal", 1).waiting

        code, out, _err = erase("--yes", "--json")

        assert (code, json.loads(out)["unsettled"]) == (0, [])
        assert kept == {"mem0": 1}
        assert look(tmp_path / "journal", 1).waiting == {}
        assert found_in([tmp_path], "nougat on Sundays") == set()

    def test_a_write_that_cannot_be_made_keeps_the_trail(
        self, remembered, erase, module, tmp_path, monkeypatch
    ):
        """It may be theirs, and would come back: the erasure is not complete, and says why."""
        made = module.Application()
        made.bare.vector_store.insert = _away
        with context(tenant=TENANT, customer=BOB):
            made.memory.add("likes nougat on Sundays too", user_id=BOB, infer=False)
        made.close()
        from mem0.vector_stores.qdrant import Qdrant

        monkeypatch.setattr(Qdrant, "insert", _away)
        monkeypatch.setattr("mnemoscope.memory.subject_data.customer_data.SETTLE_S", 0.5)

        code, out, _err = erase("--yes", "--json")

        document = json.loads(out)
        assert (code, document["complete"], document["details"]) == (3, False, None)
        (journal,) = (each for each in document["places"] if each["name"] == "journal")
        assert journal["messages"] == [
            "1 writes for mem0 wait in the journal: they may be anybody's"
        ]


def _away(*_args, **_kwargs):
    raise ConnectionError


def made_threads(application):
    """Return the threads that an application's saver has, and close it."""
    rows = application.tables[1].execute("SELECT DISTINCT thread_id FROM checkpoints").fetchall()
    application.close()
    return {thread for (thread,) in rows}


class TestAsking:
    def test_without_a_scope_it_refuses(self, remembered, erase, tmp_path):
        """The log alone cannot forget in stores; nothing is changed."""
        code, _out, err = erase("--yes", scope=False)

        assert code == 4
        assert "--scope" in err
        assert found_in([tmp_path / "application"], *WORDS.values()) == set(WORDS.values())

    def test_without_anybody_to_ask_it_wants_to_be_told(self, remembered, erase, tmp_path):
        """In a pipe, ``--yes`` says that it is meant."""
        code, _out, err = erase()

        assert code == 4
        assert "--yes" in err
        assert found_in([tmp_path / "application"], *WORDS.values()) == set(WORDS.values())

    @pytest.mark.parametrize(("answer", "code"), [("n\n", 3), ("\n", 3), ("y\n", 0)])
    def test_at_a_terminal_it_asks(self, remembered, erase, tmp_path, monkeypatch, answer, code):
        """And takes silence for a no: then nothing was changed."""
        terminal = StringIO(answer)
        monkeypatch.setattr(terminal, "isatty", lambda: True)
        monkeypatch.setattr(sys, "stdin", terminal)

        ended, _out, err = erase()

        left = found_in([tmp_path / "application"], WORDS[ADA])
        assert (ended, bool(left)) == (code, code == 3)
        assert ("nothing was changed" in err) is (code == 3)

    @pytest.mark.parametrize("customer", ["*", " "])
    def test_everybody_and_nobody_are_refused(self, remembered, erase, tmp_path, customer):
        """A store takes a star for all its customers."""
        code, _out, err = erase("--yes", customer=customer)

        assert code == 4
        assert "Traceback" not in err
        assert found_in([tmp_path / "application"], *WORDS.values()) == set(WORDS.values())

    def test_an_id_of_two_tenants_is_nobodys_to_erase(self, remembered, erase, module, tmp_path):
        """Exit code 5, nothing is changed, until somebody says whose the stores are."""
        made = module.Application()
        with context(tenant="globex", customer=ADA):
            made.store.put(("profiles", ADA), "other", {"text": "rides a gravel bike"})
        made.scope.flush(GIVE_UP_S)
        made.close()
        everything = {*WORDS.values(), "rides a gravel bike"}

        code, _out, err = erase("--yes")
        assert code == 5
        assert "known under tenant globex too" in err
        assert "Nothing was changed" in err
        assert found_in([tmp_path / "application"], *everything) == everything
        module.made.pop().close()

        code, _out, _err = erase("--yes", "--own-stores")
        assert code == 0
        assert found_in([tmp_path / "application"], *everything) == {WORDS[BOB]}

    def test_a_thread_of_two_customers_is_kept_until_it_is_asked_for(
        self, remembered, erase, module
    ):
        """Exit code 3, which thread, and how to go on; then it is gone for both."""
        made = module.Application()
        with context(tenant=TENANT, customer=BOB):
            config = {"configurable": {"thread_id": "thread-1"}}
            made.graph.invoke({"messages": [("user", "joins in")]}, config)
        made.scope.flush(GIVE_UP_S)
        made.close()

        code, out, _err = erase("--yes")
        said = " ".join(out.replace("│", " ").split())
        assert code == 3
        assert "thread-1 is shared with another customer, and was kept" in said
        assert made_threads(module.made.pop()) == {"thread-1", "thread-2"}

        code, _out, _err = erase("--yes", "--including-shared")
        assert code == 0
        assert made_threads(module.made.pop()) == {"thread-2"}

    def test_a_store_that_fails_is_named(self, remembered, erase, module, monkeypatch):
        """With exit code 3, and what to do; running it again ends it."""
        from langgraph.store.sqlite import SqliteStore

        with monkeypatch.context() as broken:
            broken.setattr(SqliteStore, "batch", _away)
            code, out, _err = erase("--yes")
        module.made.pop().close()

        assert code == 3
        assert "langgraph.store" in out
        assert "run this again" in " ".join(out.split())
        assert max(len(line) for line in out.splitlines()) <= 80

        code, out, _err = erase("--yes")
        assert code == 0
        assert "(resumed)" in " ".join(out.split())

    def test_no_id_is_printed(self, remembered, erase):
        """What the terminal shows may be pasted into a ticket."""
        _code, out, err = erase("--yes")

        assert ADA not in out + err


class TestReceipt:
    def test_it_is_left_when_nothing_else_is(self, remembered, erase, tmp_path, module):
        """A log that has it is told until it is clean, on 80 columns; then there is a receipt."""
        log = tmp_path / "app.jsonl"
        before = log.read_bytes()
        log.write_bytes(before + f'{{"said": "{WORDS[ADA]}"}}\n'.encode())
        runs = []
        for _ in range(2):
            runs.append(erase("--yes"))
            module.made.pop().close()
        log.write_bytes(before)

        code, out, err = erase("--yes", "--receipt", str(tmp_path))

        assert [code for code, _out, _err in runs] == [3, 3]
        assert "app.jsonl" in runs[1][1]
        assert all(len(line) <= 80 for _code, said, _err in runs for line in said.splitlines())
        assert "No receipt yet" in runs[1][2]
        (receipt,) = tmp_path.glob("mnemoscope-receipt-*.zip")
        assert (code, receipt.name in err, ADA in out + err) == (0, True, False)
        assert run(["audit", "verify", "--bundle", str(receipt)]) == 0
        assert ADA in ZipFile(receipt).read("RECEIPT.txt").decode()

    def test_a_place_that_takes_none_is_told_first(self, remembered, erase, tmp_path):
        """Before anything is erased."""
        code, _out, err = erase("--yes", "--receipt", str(tmp_path / "none" / "receipt.zip"))

        assert (code, "Nothing was changed" in " ".join(err.split())) == (4, True)
        assert found_in([tmp_path / "application"], *WORDS.values()) == set(WORDS.values())

    def test_a_receipt_that_cannot_be_written_is_no_success(
        self, remembered, erase, tmp_path, monkeypatch
    ):
        """What was erased is; who asks for the receipt is told that there is none."""
        monkeypatch.setattr("mnemoscope.adapters.customer_requests.erase.write_receipt", _no_room)

        code, out, err = erase("--yes")

        assert (code, "Forgotten." in out, "no receipt could be written" in err) == (3, True, True)


def _no_room(*_args, **_kwargs):
    raise OSError(28, "No space left on device")


class TestKilled:
    @pytest.mark.long
    def test_it_goes_on_after_being_killed(self, remembered, erase, application, tmp_path):
        """A process that dies between two steps, for real, leaves a request that is resumed."""
        script = f"""
            import os, signal
            from mnemoscope.adapters.cli.scope import scope_at
            from mnemoscope.adapters.customer_requests.erase import erase
            from mnemoscope.adapters.customer_requests.requested_person import person_in_scope
            from mnemoscope.audit.store.person_lookup import CustomerQuery

            def die(step):
                if step == "forgetting in langgraph.store":
                    os.kill(os.getpid(), signal.SIGKILL)

            scope = scope_at("{application}:scope")
            person = person_in_scope(scope, CustomerQuery(customer="{ADA}", tenant="{TENANT}"))
            erase(scope, person, die)
        """
        folders = [os.getcwd(), os.environ.get("PYTHONPATH", "")]  # noqa: PTH109 - a string
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))}
        done = subprocess.run(
            [sys.executable, "-c", dedent(script)], env=environment, timeout=GIVE_UP_S, check=False
        )
        assert done.returncode == -signal.SIGKILL
        assert found_in([tmp_path], *WORDS.values()) == set(WORDS.values())

        code, out, _err = erase("--yes", "--json")

        document = json.loads(out)
        assert (code, document["complete"], document["resumed"]) == (0, True, True)
        assert found_in([tmp_path], *WORDS.values()) == {WORDS[BOB]}


def test_a_scope_knows_its_holdings_by_name(module):
    """What the command asks is what was wrapped, in that order."""
    scope = module.scope()

    assert isinstance(scope, Mnemoscope)
    assert Path("stores").is_dir()
    assert list(scope.subject_data.named()) == [
        "mem0",
        "qdrant",
        "langgraph.store",
        "langgraph.checkpoint",
    ]
