"""Somebody else's adapter: installed from a package of its own, and found by its entry point."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent

import pytest

from mnemoscope.audit.bundle.notice import ART_15, CONTROLLER
from tests.kit.patience import GIVE_UP_S, UNHURRIED

pytestmark = [
    pytest.mark.skipif(find_spec("chromadb") is None, reason="chromadb is not installed"),
    pytest.mark.long,
]

SOURCE = Path(__file__).parents[3] / "examples" / "third_party" / "chroma_store"
CANARIES = ("ada.lovelace@example.com", "william.king@example.com")
CUSTOMER, OTHER = "customer-42", "customer-43"
WORDS = {CUSTOMER: "likes marzipan with her porridge", OTHER: "likes liquorice in his tea"}

APPLICATION = f"""
    import sys
    from pathlib import Path

    import chromadb
    from prometheus_client import generate_latest

    from mnemoscope.memory import Mnemoscope, context

    HERE = Path(__file__).parent


    def notes():
        client = chromadb.PersistentClient(HERE / "store")
        return client.get_or_create_collection("notes", embedding_function=None)


    def scope():
        made = Mnemoscope()
        made.guard(notes())
        return made


    def remember():
        scope = Mnemoscope()
        guarded = scope.guard(notes())
        people = zip({WORDS!r}.items(), {CANARIES!r})
        for number, ((customer, words), canary) in enumerate(people):
            with context(tenant="acme", customer=customer, agent="sales", purpose="reply"):
                guarded.add(
                    ids=[f"n-{{number}}"],
                    embeddings=[[1.0, float(number)]],
                    documents=[f"{{words}}; write to {{canary}}"],
                    metadatas=[{{"customer": customer, "contact": canary}}],
                )
                found = guarded.query(
                    query_embeddings=[[1.0, float(number)]],
                    where={{"$and": [{{"customer": customer}}, {{"contact": canary}}]}},
                    where_document={{"$contains": canary}},
                )
                print(type(guarded).__name__, found["documents"])
        try:
            guarded.query(query_embeddings=[[1.0]], where={{"contact": canary}})
        except Exception as exc:
            print(type(exc).__name__)
        assert scope.flush({GIVE_UP_S})
        scope.close()
        print(generate_latest().decode())


    if __name__ == "__main__":
        remember()
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package as anybody would, and return the folder it is in."""
    copied = tmp_path_factory.mktemp("source") / SOURCE.name
    shutil.copytree(SOURCE, copied)
    target = tmp_path_factory.mktemp("installed")
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index")
    run = (sys.executable, "-m", "pip", "install", *options, "--target", str(target), str(copied))
    subprocess.run(run, check=True, timeout=GIVE_UP_S, capture_output=True)
    return target


@pytest.fixture
def python(installed, tmp_path, http_receiver, langsmith_server):
    """Return a function that runs Python where the package is installed, with all five sinks."""
    paths = (str(installed), os.environ.get("PYTHONPATH"))
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "home"),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "OTEL_EXPORTER_OTLP_ENDPOINT": http_receiver.url,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "LANGSMITH_ENDPOINT": http_receiver.url,
        "LANGSMITH_API_KEY": "ls-test-key",
        "MNEMOSCOPE_SINKS": "otlp,prometheus,logs,langsmith,audit",
        "MNEMOSCOPE_CONTENT_SINKS": "audit",
        "MNEMOSCOPE_AUDIT_URL": f"sqlite:///{tmp_path / 'audit.db'}",
        "MNEMOSCOPE_LOG_FILE": str(tmp_path / "log.jsonl"),
        "MNEMOSCOPE_PII_MODEL": "none",
        **UNHURRIED,
    }

    def ran(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=environment | more,
            capture_output=True,
            text=True,
            timeout=GIVE_UP_S,
            check=False,
        )

    return ran


@pytest.fixture
def remembering(python, tmp_path):
    """Return what an application printed that remembered two customers through the adapter."""
    (tmp_path / "application.py").write_text(dedent(APPLICATION))
    ended = python("-W", "error", "application.py")
    assert ended.returncode == 0, ended.stderr
    return ended.stdout + ended.stderr


def command(python, name, *options):
    """Return the outcome of ``mnemoscope audit`` for the first customer."""
    program = "from mnemoscope.adapters.cli.root import main; main()"
    whose = ("--customer", CUSTOMER, "--tenant", "acme", "--scope", "application:scope", "--json")
    ended = python("-c", program, "audit", name, *whose, *options)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def files_with(folder, text):
    """Return the files below *folder* that hold *text*."""
    every = (each for each in folder.rglob("*") if each.is_file())
    return {each.name for each in every if text.encode() in each.read_bytes()}


def sent_to(receiver, path):
    """Return all that was sent to *path*."""
    return b"\n".join(receiver.bodies(path))


def test_it_uses_nothing_but_the_public_protocols():
    """What a store needs of mnemoscope is in one module."""
    used = {
        node.module
        for path in (SOURCE / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mnemoscope")
    }

    assert used - {"mnemoscope_chroma.adapter"} == {"mnemoscope.memory.api"}


def test_it_is_small():
    """An adapter is a description of a store, not a second client."""
    assert sum(len(each.read_text().splitlines()) for each in (SOURCE / "src").rglob("*.py")) <= 280


def test_its_own_tests_hold_it_to_the_contract(python):
    """They run ``check_adapter`` against a real Chroma."""
    ended = python("-m", "pytest", "-q", "-p", "no:cacheprovider", str(SOURCE / "tests"))

    assert ended.returncode == 0, ended.stdout


def test_the_scope_finds_it(remembering):
    """By its entry point: ``scope.guard`` returns a guarded collection, and its calls are told."""
    assert remembering.count("Collection [['likes") == 2
    assert 'store="my.chroma"' in remembering


def test_nothing_personal_comes_out(remembering, python, tmp_path, http_receiver):
    """Neither into Chroma's files nor into any sink or output, whether sinks get content or not."""
    told = python("application.py", MNEMOSCOPE_CONTENT_SINKS="otlp,logs,langsmith,audit").stdout
    (tmp_path / "application.py").unlink()
    sent = {path: sent_to(http_receiver, path) for path, _headers, _body in http_receiver.requests}

    assert not any(each in told + remembering for each in CANARIES)
    assert not any(files_with(tmp_path, each) for each in CANARIES)
    assert not any(each.encode() in body for each in CANARIES for body in sent.values())
    assert {path for path, body in sent.items() if b"EMAIL_ADDRESS" in body} >= {
        "/v1/traces",
        "/runs/multipart",
    }
    assert files_with(tmp_path, "<EMAIL_ADDRESS>") >= {"chroma.sqlite3", "log.jsonl"}


def test_an_export_shows_what_is_remembered(remembering, python, tmp_path):
    """From the store, through the adapter: this customer's documents and nobody else's."""
    notice = tmp_path / "notice.json"
    stated = {"controller": dict.fromkeys(CONTROLLER, "x"), "art15": dict.fromkeys(ART_15, "x")}
    notice.write_text(json.dumps(stated))
    out = str(tmp_path / "export.zip")
    command(python, "export", "--out", out, "--notice", str(notice))
    with zipfile.ZipFile(tmp_path / "export.zip") as archive:
        pages = b"".join(archive.read(name) for name in archive.namelist()).decode(
            "utf-8", "ignore"
        )

    assert f"{WORDS[CUSTOMER]}; write to <EMAIL_ADDRESS>" in pages
    assert WORDS[OTHER] not in pages


def test_an_erasure_leaves_nothing(remembering, python, tmp_path):
    """Not in Chroma's files either, whose own ``delete`` leaves it in a queue."""
    before = files_with(tmp_path / "store", WORDS[CUSTOMER])
    told = json.loads(command(python, "erase", "--yes"))

    assert before == {"chroma.sqlite3"}
    assert told["complete"]
    assert files_with(tmp_path / "store", WORDS[CUSTOMER]) == set()
    assert files_with(tmp_path / "store", WORDS[OTHER]) == {"chroma.sqlite3"}
