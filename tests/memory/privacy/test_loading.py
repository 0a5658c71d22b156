"""What is loaded in the background: once, whoever waits for it, and whenever a process forks."""

from __future__ import annotations

import importlib
import logging
import os
import subprocess
import sys
import threading

import pytest

from mnemoscope.memory import RedactionError
from mnemoscope.memory.privacy.engine.loading import Loading
from mnemoscope.memory.privacy.engine.redactor import build_redactor
from tests.kit.children import exit_code_of_child
from tests.kit.patience import GIVE_UP_S


class Loaded:
    """Counts how often it is loaded, which waits for `go`."""

    def __init__(self):
        self.times = 0
        self.go = threading.Event()

    def __call__(self):
        self.times += 1
        assert self.go.wait(GIVE_UP_S)


@pytest.fixture
def loaded():
    loaded = Loaded()
    yield loaded
    loaded.go.set()


def test_it_is_loaded_once_for_all_who_wait(loaded):
    """Sixty-four threads whose first calls come at once do not each load it."""
    loading, ready = Loading(loaded), []
    threads = [
        threading.Thread(target=lambda: ready.append(loading.wait(GIVE_UP_S))) for _ in range(64)
    ]
    for each in threads:
        each.start()
    loaded.go.set()
    for each in threads:
        each.join(GIVE_UP_S)

    assert ready == [True] * 64
    assert loaded.times == 1


def test_who_waits_goes_on_when_the_time_is_up(loaded):
    """It is loaded all the same."""
    loading = Loading(loaded)

    assert not loading.wait(0.01)
    loaded.go.set()
    assert loading.wait(GIVE_UP_S)
    assert loaded.times == 1


def test_what_could_not_be_loaded_is_tried_again():
    """By the next who waits: the first is told at once."""
    errors = [OSError("no file"), None]

    def load():
        if error := errors.pop(0):
            raise error

    loading = Loading(load)

    assert not loading.wait(GIVE_UP_S)
    assert isinstance(loading.error, OSError)
    assert loading.wait(GIVE_UP_S)


def test_what_is_being_loaded_does_not_wait_for_itself():
    """A handler of log records may call a guarded store, on the thread that loads."""
    answers = []
    loading = Loading(lambda: answers.append(loading.wait(GIVE_UP_S)))

    assert loading.wait(GIVE_UP_S)
    assert answers == [False]


def test_a_redactor_without_detectors_refuses(keys, monkeypatch):
    """Nothing passes unsearched because something could not be imported."""
    redactor = build_redactor(model="none", keys=keys)
    monkeypatch.setattr(redactor, "_make_engine", lambda *_: {}["gone"])

    with pytest.raises(RedactionError, match="nothing to redact with: KeyError"):
        redactor.begin().text("mail ada@example.com")
    assert not redactor.prepare(GIVE_UP_S)


def test_preparing_says_whether_all_is_loaded(keys):
    """A model that is not installed is no reason to wait."""
    redactor = build_redactor(model="en=no_such_model_anywhere", keys=keys)

    assert redactor.prepare(GIVE_UP_S)
    assert redactor.health().is_degraded


def test_a_model_that_is_not_installed_is_told_once(keys, caplog):
    """As soon as it is known: before any text is redacted, and not again with each."""
    with caplog.at_level(logging.WARNING, "mnemoscope"):
        redactor = build_redactor(model="en=no_such_model_anywhere", keys=keys)
        assert len(caplog.records) == 1
        redactor.prepare(GIVE_UP_S)
        redactor.begin().text("What did Zorblax Quimby say?")

    assert [each.levelname for each in caplog.records] == ["WARNING"]
    assert "no_such_model_anywhere" in caplog.text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_waits_for_what_is_being_loaded(loaded):
    """A child would inherit import locks that nobody there releases."""
    loading = Loading(loaded)
    loading.begin()
    threading.Timer(0.2, loaded.go.set).start()

    assert exit_code_of_child(lambda: loading.is_done) == 0


FORKING = """
import os, signal, sys, threading
from mnemoscope.memory.privacy.engine.redactor import build_redactor
from mnemoscope.telemetry.event.subject import SubjectKeys

moment, imports, here = int(sys.argv[1]), [0], threading.Event()

def note(event, args):
    if event == "import" and threading.current_thread().name == "mnemoscope-loading":
        imports[0] += 1
        if imports[0] == moment:
            here.set()
            threading.Event().wait(0.05)  # inside an import, for long enough to be forked in

sys.addaudithook(note)
redactor = build_redactor(model="none", keys=SubjectKeys(bytes(32)))
threading.Thread(target=redactor.prepare).start()
here.wait(10)
child = os.fork()
if not child:
    signal.alarm(20)  # ends a child that waits for what never comes
    os._exit(redactor.begin().text("mail ada@example.com") != "mail <EMAIL_ADDRESS>")
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("moment", [1, 12, 30])
@pytest.mark.long
def test_a_child_forked_in_the_midst_of_an_import_redacts(moment):
    """Whichever module its parent's thread was importing."""
    ended = subprocess.run(
        [sys.executable, "-c", FORKING, str(moment)], timeout=GIVE_UP_S, check=False
    )

    assert ended.returncode == 0


HELD = "Write to ada@example.com or to Maria Kowalska, NHC: 2569870, at 12 Main Street."


class TestPresidio:
    """Its import takes seconds, which no call waits for."""

    @pytest.fixture
    def redactor(self, loaded, subject_keys):
        redactor = build_redactor(model="none", keys=subject_keys)
        make, redactor._make_analyzer = redactor._make_analyzer, lambda: (loaded(), make())[1]
        return redactor

    def test_until_it_is_imported_the_same_is_found(self, redactor, loaded):
        """The detectors are ours: the first text is searched by them alone."""
        before = redactor.explain(HELD)
        loaded.go.set()
        assert redactor.prepare(GIVE_UP_S)

        assert {each.entity for each in before} >= {"EMAIL_ADDRESS", "PERSON"}
        # A space more: the same text would not be searched again.
        assert redactor.explain(f"{HELD} ") == before

    def test_a_short_command_does_not_import_it(self, redactor, loaded):
        """It costs two seconds of the processor: only who goes on for some seconds pays that."""
        seconds = iter([0.0, 4.0, 5.5])
        redactor._clock = lambda: next(seconds)
        loaded.go.set()

        started = []
        redactor._presidio.begin = lambda: started.append(True)
        counts = [redactor.explain(HELD + n * " ") and len(started) for n in range(3)]

        assert counts == [0, 0, 1]

    def test_where_it_cannot_be_imported_that_is_said_once(self, subject_keys, caplog):
        """Redaction goes on by the detectors."""
        redactor = build_redactor(model="none", keys=subject_keys)
        redactor._make_analyzer = lambda: importlib.import_module("presidio_analyzer.missing")
        assert not redactor.prepare(GIVE_UP_S)

        found = [redactor.explain(HELD + n * " ") for n in range(3)]

        assert found[0]
        assert caplog.text.count("Presidio cannot be imported (ModuleNotFoundError)") == 1
