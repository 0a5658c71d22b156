"""GLiNER and transformer models by setting: stand-ins for the libraries, which are not here."""

from __future__ import annotations

import logging
import re
import sys
import types
from importlib.util import find_spec

import pytest

from mnemoscope.memory.health import checks as look
from mnemoscope.memory.health.model import State
from mnemoscope.memory.privacy.engine.redactor import build_redactor
from mnemoscope.memory.privacy.models import name_model as models
from mnemoscope.memory.privacy.models.name_model import ModelState
from mnemoscope.memory.privacy.models.span_models import ENTITIES_BY_TAG, EntitySpan, SpanModel

TEXT = "Yesterday Siobhan Okonkwo was in Lisbon for Globex."
KNOWN = {"Siobhan Okonkwo": "person", "Lisbon": "location", "Globex": "organization"}
TAGS = {"person": "PER", "location": "LOC", "organization": "ORG"}


@pytest.fixture(autouse=True)
def nothing_loaded(monkeypatch):
    """Begin each test without models that an earlier one has loaded."""
    monkeypatch.setattr(models, "_pipelines", {})


def _library(monkeypatch, name, **attributes):
    module = types.ModuleType(name)
    module.__spec__ = types.SimpleNamespace(name=name)
    vars(module).update(attributes)
    monkeypatch.setitem(sys.modules, name, module)


def _found(text):
    for words, label in KNOWN.items():
        for match in re.finditer(words, text):
            yield {"start": match.start(), "end": match.end(), "label": label, "score": 0.9}


@pytest.fixture
def gliner(monkeypatch):
    """Install a library that answers as GLiNER does; return how it was asked."""
    asked = []

    class GLiNER:
        @classmethod
        def from_pretrained(cls, name, *, local_files_only):
            asked.append((name, local_files_only))
            if name == "not/downloaded":
                raise OSError("nothing in the cache")
            return cls()

        def predict_entities(self, text, labels, threshold):
            return [each for each in _found(text) if each["label"] in labels]

    _library(monkeypatch, "gliner", GLiNER=GLiNER)
    return asked


@pytest.fixture
def transformers(monkeypatch):
    """Install a library that answers as transformers does; return how it was asked."""
    asked = []

    class Auto:
        @classmethod
        def from_pretrained(cls, name, *, local_files_only):
            asked.append((name, local_files_only))
            return name

    def pipeline(task, *, model, tokenizer, aggregation_strategy):
        assert (task, aggregation_strategy) == ("token-classification", "simple")

        def tag(text):
            for each in _found(text):
                yield {**each, "entity_group": TAGS[each["label"]], "word": ""}

        return tag

    _library(
        monkeypatch,
        "transformers",
        AutoModelForTokenClassification=Auto,
        AutoTokenizer=Auto,
        pipeline=pipeline,
    )
    return asked


@pytest.mark.parametrize("library", ["gliner", "transformers"])
def test_it_finds_names(keys, request, library):
    """Places and organisations stay, as they do with any model."""
    asked = request.getfixturevalue(library)
    redactor = build_redactor(model=f"{library}:some/model", keys=keys)
    redacted = redactor.begin().text(TEXT)

    assert redacted == "Yesterday <PERSON> was in Lisbon for Globex."
    assert redactor.health().state is ModelState.READY
    assert {local for _, local in asked} == {True}


@pytest.mark.parametrize("library", ["gliner", "transformers"])
def test_what_is_switched_on_is_found_too(keys, request, library):
    """By the names that we have for it."""
    request.getfixturevalue(library)
    operators = {"LOCATION": "tag", "ORGANIZATION": "mask"}
    redactor = build_redactor(model=f"{library}:m", keys=keys, operators=operators)

    assert redactor.begin().text(TEXT) == "Yesterday <PERSON> was in <LOCATION> for ********."


def test_it_is_loaded_once_and_when_it_is_needed(keys, gliner):
    """Building costs nothing, and redactors share it."""
    redactors = [build_redactor(model="gliner:m", keys=keys) for _ in range(2)]
    before = list(gliner)
    for redactor in redactors:
        redactor.begin().text(TEXT)

    assert before == []
    assert gliner == [("m", True)]


@pytest.mark.parametrize("name", ["gliner:urchade/some", "transformers:some", "gliner:"])
@pytest.mark.skipif(
    any(map(find_spec, ("gliner", "transformers"))), reason="the libraries are installed here"
)
def test_without_the_library_it_is_done_without(keys, caplog, name):
    """The rules go on, health and doctor say so, and one warning tells how to mend it."""
    redactor = build_redactor(model=name, keys=keys)
    with caplog.at_level(logging.WARNING, logger="mnemoscope"):
        redacted = redactor.begin().text("My name is Zuzana Ruoho, of Kvelertak")
    check = look.names(redactor.health())

    assert redacted == "My name is <PERSON>, of Kvelertak"
    assert redactor.health().state is ModelState.MISSING
    assert check.state is State.FAILED
    assert "nothing is downloaded" in caplog.text


def test_a_model_that_is_not_on_this_machine_is_done_without(keys, gliner, caplog):
    """It is not fetched."""
    redactor = build_redactor(model="gliner:not/downloaded", keys=keys)
    with caplog.at_level(logging.WARNING, logger="mnemoscope"):
        redacted = redactor.begin().text("My name is Zuzana Ruoho, of Kvelertak")

    assert redacted == "My name is <PERSON>, of Kvelertak"
    assert redactor.health().state is ModelState.FAILED
    assert redactor.health().error == "OSError"
    assert len(caplog.records) == 1


def test_doctor_knows_before_it_is_loaded(keys, gliner):
    """That its library is installed."""
    check = look.names(build_redactor(model="gliner:m", keys=keys).health())

    assert check.state is State.OK


def test_long_texts_are_shown_in_pieces_that_a_model_takes_whole():
    """A model cuts off what is too long, and says nothing."""
    shown = []

    def predict(text):
        shown.append(text)
        return [
            EntitySpan(m.start(), m.end(), "B-PER", 1.0)
            for m in re.finditer("Siobhan Okonkwo", text)
        ]

    model = SpanModel(predict, ENTITIES_BY_TAG)
    for shift in range(0, 400, 17):
        text = "x" * shift + " the weather is nice" * 40 + " and Siobhan Okonkwo came along" * 9
        found = {text[each.start : each.end] for each in next(model.find([text]))}
        places = {each.start for each in next(model.find([text]))}

        assert found == {"Siobhan Okonkwo"}
        assert len(places) == 9
    assert max(map(len, shown)) <= 360


def test_unsure_and_unknown_labels_are_left():
    """A guess is no finding."""
    spans = [
        EntitySpan(0, 3, "PER", 0.2),
        EntitySpan(0, 3, "CARDINAL", 0.9),
        EntitySpan(4, 7, "I-PER", 0.6),
    ]
    found = next(SpanModel(lambda _text: spans, ENTITIES_BY_TAG).find(["Ada Bob"]))

    assert [(each.start, each.entity) for each in found] == [(4, "PERSON")]
