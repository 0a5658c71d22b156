"""A command awaits an asynchronous client in one event loop, however often it asks it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from mnemoscope.memory import Mnemoscope, context
from tests.kit.command_line import run

APPLICATION = '''
    """A store whose client keeps a connection, and with it the event loop that made it."""
    import asyncio

    from mnemoscope.memory import configure
    from mnemoscope.memory.api import Erased, Page, StoreAdapter, StoreBinding, SubjectRecord
    from mnemoscope.memory.api import method_table, recall


    class Client:
        def __init__(self):
            self.loop, self.texts, self.asked = None, ["likes tea", "likes rain", "likes jam"], 0

        async def find(self):
            return self.texts

        def ask(self):
            self.loop = self.loop or asyncio.get_running_loop()
            self.asked += 1
            if self.loop is not asyncio.get_running_loop():
                raise RuntimeError("Event loop is closed")


    class Data:
        store, title, unavailable = "ledger", "Facts", None

        def __init__(self, client):
            self.client = client

        async def page(self, subject, after=None):
            self.client.ask()
            if subject.customer != "c-42" or not self.client.texts:
                return Page(())
            first = after or 0
            text = self.client.texts[first]
            after = first + 1 if first + 1 < len(self.client.texts) else None
            return Page((SubjectRecord(kind="memory", id=str(first), content=text),), after)

        async def erase(self, subject):
            self.client.ask()
            removed, self.client.texts = len(self.client.texts), []
            return Erased(removed)

        async def files(self):
            return ()


    TABLE = method_table(recall("find", neutral=lambda _given: []))
    ADAPTER = StoreAdapter(
        store="ledger",
        client_types=(Client,),
        bind=lambda client, _services: StoreBinding(methods=TABLE, subject_data=Data(client)),
    )
    client = Client()


    def scope():
        made = configure(pii_model="none")
        scope.guarded = made.guard(client, adapter=ADAPTER)
        return made
'''


@pytest.fixture
def application(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """Be in an application's folder, with a trail; its module's name."""
    for name in list(os.environ):
        if name.startswith(("MNEMOSCOPE_", "OTEL_", "LANGSMITH_", "LANGCHAIN_")):
            monkeypatch.delenv(name)
    name = f"ledger_{os.getpid()}_{abs(hash(tmp_path))}"
    (tmp_path / f"{name}.py").write_text(dedent(APPLICATION))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("MNEMOSCOPE_SINKS", "audit")
    module = __import__(name)
    scope: Mnemoscope = module.scope()
    with context(tenant="acme", customer="c-42"):
        asyncio.run(module.scope.guarded.find())
    scope.close()
    yield name
    del sys.modules[name]


def test_a_command_exports_and_erases_by_a_client_that_keeps_its_connections(
    application, capsys, tmp_path
):
    """Who is meant, and what is held, is asked in one loop; the next command has its own client."""
    person = ["--customer", "c-42", "--tenant", "acme", "--scope", f"{application}:scope"]
    run(["audit", "export", *person, "--out", str(tmp_path / "ada.zip"), "--json"])
    (exported,) = json.loads(capsys.readouterr().out)["stores"]
    client = sys.modules[application].client
    assert (exported["status"], exported["n_memories"]) == ("complete", 3)
    assert client.loop.is_closed()

    client.loop = None
    assert run(["audit", "erase", *person, "--yes", "--json"]) == 0
    (erased,) = json.loads(capsys.readouterr().out)["stores"]
    assert (erased["status"], erased["removed"], erased["remaining"]) == ("complete", 3, 0)
