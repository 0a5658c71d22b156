"""The walk of a newcomer, as docs/architecture.md has it, is the way of a call."""

from __future__ import annotations

import re
import sys
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from mem0 import Memory

from mnemoscope.memory import Mnemoscope, context, load_settings
from tests.kit.patience import GIVE_UP_S

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
STOP = re.compile(r"^\d+\. `([\w/]+\.py)`", re.MULTILINE)


def stops_below(heading: str, end: str) -> list[str]:
    """Return the files of the list between two sentences of the page."""
    return STOP.findall(PAGE.partition(heading)[2].partition(end)[0])


CALL = stops_below("## The walk of a newcomer", "And one event")
EVENT = stops_below("And one event", "## Where does a write go")


@pytest.fixture(scope="module")
def entered(tmp_path_factory):
    """Return the files of ours that a guarded `add` enters, in their order, by thread."""
    folder = tmp_path_factory.mktemp("walk")
    # Threads that other tests have left would enter our files in between.
    others = {each.ident for each in threading.enumerate()} - {threading.get_ident()}
    settings = load_settings(
        audit_pseudonym_key="ab" * 32,
        pii_model="none",
        sinks="logs",
        log_file=folder / "events.jsonl",
    )
    scope = Mnemoscope(settings)
    memory: Any = Memory.__new__(Memory)
    memory.add = lambda messages, *, user_id=None: {
        "results": [{"id": "1", "memory": "green tea", "event": "ADD"}]
    }
    guarded = scope.mem0(memory)
    files: list[str] = []

    def note(frame, event, _argument):
        path = Path(frame.f_code.co_filename)
        is_ours = path.is_relative_to(ROOT) and ".venv" not in path.parts
        if event == "call" and is_ours and threading.get_ident() not in others:
            files.append(path.relative_to(ROOT).as_posix())

    def add():
        with context(tenant="acme", customer="c-1"):
            guarded.add("likes green tea, ada@example.com", user_id="c-1")

    add()
    assert scope.flush(GIVE_UP_S)
    before = sys.getprofile()
    threading.setprofile_all_threads(note)
    try:
        add()
        assert scope.flush(GIVE_UP_S)
    finally:
        threading.setprofile_all_threads(before)
        scope.close()
    return [*dict.fromkeys(files)]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="threads of before cannot be traced on 3.11")
@pytest.mark.parametrize(("stops", "most"), [(CALL, 30), (EVENT, 20)], ids=["call", "event"])
def test_each_stop_is_on_the_way(entered, stops, most):
    """In that order, and there are not too many for one sitting."""
    places = [entered.index(each) for each in stops if each in entered]

    assert [each for each in stops if each not in entered] == []
    assert all(one < other for one, other in pairwise(places))
    assert 0 < len(stops) <= most
