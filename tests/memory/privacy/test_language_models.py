"""Several language models, each shown the windows in its own language."""

from __future__ import annotations

import json
import re
from functools import partial

import pytest

from mnemoscope.memory import ConfigurationError, RedactionError, State, load_settings
from mnemoscope.memory.health import checks as look
from mnemoscope.memory.privacy.detectors.finding import Finding
from mnemoscope.memory.privacy.engine.redactor import build_redactor
from mnemoscope.memory.privacy.models.model_setting import parse_models
from mnemoscope.memory.privacy.models.name_model import ModelState, NameModel

ENGLISH = "They told us that Zorblax would be late again."
GERMAN = "Gestern war Wenlock wieder eine Stunde zu spät, und das ist nicht gut."
FRENCH = "Hier soir Tharsis avait encore une heure de retard dans le train."
MIXED = "\n".join(
    (
        f"{ENGLISH} It was not the first time, and nobody was surprised about it at all.",
        f"Das war nicht das erste Mal, und keiner war davon noch sehr überrascht. {GERMAN}",
        "Das hatte keiner gewollt, aber so war es nun einmal, wie jeder von uns wusste.",
        f"Ce n'est pas la première fois, et tout le monde le sait depuis longtemps. {FRENCH}",
    )
)
"""Lines in three languages, each with a name far from the next line's."""

NAMES = "Zorblax|Wenlock|Tharsis"


class Shown:
    """A model that finds made-up names, and notes what it is shown."""

    def __init__(self):
        self.texts = []

    def find(self, texts):
        self.texts += texts
        for text in texts:
            yield [
                Finding(match.start(), match.end(), "PERSON", 0.85, "language model")
                for match in re.finditer(NAMES, text)
            ]

    @property
    def text(self):
        return "\n".join(self.texts)


def _found(model, _source, _language):
    return model


@pytest.fixture
def with_models(keys, tmp_path):
    """Return a function that makes a redactor with a made-up model for each language."""

    def make(*languages, **given):
        setting = ",".join(f"{language}={tmp_path}" for language in languages)
        redactor = build_redactor(model=setting, keys=keys, **given)
        shown = {language: Shown() for language in languages}
        for language, model in redactor._models.items():
            model._load = partial(_found, shown[language])
        return redactor, shown

    return make


def test_each_model_is_shown_its_own_language(with_models):
    """Line by line, where a text has several."""
    redactor, shown = with_models("en", "de")
    redacted = redactor.begin().text(MIXED)

    assert re.findall(NAMES, shown["en"].text) == ["Zorblax"]
    assert re.findall(NAMES, shown["de"].text) == ["Wenlock"]
    assert not {"Zorblax", "Wenlock"} & set(re.findall(NAMES, redacted))


@pytest.mark.parametrize("order", [("en", "*"), ("*", "en")])
def test_a_model_of_every_language_is_shown_the_rest(with_models, order):
    """And what is unsure; whichever of the two is named first."""
    redactor, shown = with_models(*order)
    redactor.begin().text(MIXED)

    assert re.findall(NAMES, shown["en"].text) == ["Zorblax"]
    assert re.findall(NAMES, shown["*"].text) == ["Wenlock", "Tharsis"]


def test_only_sentences_with_possible_names_are_shown(with_models):
    """A long text with one possible name costs what a short one does."""
    redactor, shown = with_models("en")
    padding = "the garden was quiet and they hoped for a late train. " * 60
    redacted = redactor.begin().text(padding + ENGLISH + " " + padding)

    assert "Zorblax" not in redacted
    assert len(shown["en"].text) < 300


def test_what_is_in_no_language_is_shown_to_no_model(with_models):
    """A log line, an object of JSON."""
    redactor, shown = with_models("en")
    for text in ('{"kind": "Zorblax", "n": 3}', "10:31:07 Zorblax[31]: Target=Down"):
        redactor.begin().text(text)

    assert shown["en"].texts == []


def test_a_name_that_is_sure_is_not_read(with_models):
    """A label of a model's would turn few of them, and mostly be wrong."""
    redactor, shown = with_models("en")
    redacted = redactor.begin().text("Caroline Okonkwo: I met Siobhan Okonkwo yesterday.")

    assert redacted == "<PERSON>: I met <PERSON> yesterday."
    assert shown["en"].texts == []


@pytest.mark.parametrize("text", ["Zorblax", "Attendees: Zorblax, Mu Wenlock", "Thanks Tharsis"])
def test_what_says_no_language_is_shown_to_the_english_model(with_models, text):
    """A signature, a list of names, a greeting."""
    redactor, shown = with_models("en", "de")
    redactor.begin().text(text)

    assert (shown["en"].texts, shown["de"].texts) == ([text], [])


def test_what_says_little_is_shown_to_the_model_of_what_it_says(with_models):
    """A small word of another language is more than nothing."""
    redactor, shown = with_models("en", "de")
    redactor.begin().text("Zorblax und Wenlock")
    redactor.begin().text("Zorblax og Wenlock")

    assert shown["en"].texts == []
    assert shown["de"].texts == ["Zorblax und Wenlock"]


def test_what_the_model_of_names_leaves_undecided_is_read(with_models, keys):
    """An English word that begins a sentence as a name does."""
    text = "Temperance told us that the train was late."
    redactor, shown = with_models("en")

    assert build_redactor(model="none", keys=keys).begin().text(text) != text
    assert redactor.begin().text(text) == text
    assert shown["en"].texts == [text]


@pytest.mark.parametrize(
    "text",
    [
        "Please restart the Kubernetes cluster before the Upgrade is done.",
        "The Report of the Ministry says that the Atlantic was calm in Spring.",
    ],
)
def test_what_no_reading_would_make_a_name_is_not_read(with_models, text):
    """Words with capitals that the model of names is sure of cost no reading of the sentence."""
    redactor, shown = with_models("en")

    assert redactor.begin().text(text) == text
    assert shown["en"].texts == []


def test_another_kind_is_looked_for_in_all_of_a_text(with_models):
    """A place may be written in any way, so there is no window around it."""
    redactor, shown = with_models("en", operators={"LOCATION": "tag"})
    redactor.begin().text("She moved to the garden in spring\nand they told us about it later")

    assert shown["en"].texts == [
        "She moved to the garden in spring\n",
        "and they told us about it later",
    ]


def test_each_piece_is_within_what_a_model_is_shown_at_once(with_models):
    """Other threads wait for one batch."""
    redactor, shown = with_models("en")
    redactor.begin().text(f"{ENGLISH} And then {ENGLISH} " * 40)

    assert max(map(len, shown["en"].texts)) <= 600


def test_one_model_that_fails_refuses_the_text(with_models):
    """What another one has found does not help."""
    redactor, shown = with_models("en", "de")
    shown["de"].find = lambda texts: 1 / 0

    with pytest.raises(RedactionError) as caught:
        redactor.begin().text(f"{ENGLISH}\n{GERMAN}")

    assert "Wenlock" not in str(caught.value)


@pytest.mark.parametrize(
    ("meta", "language"),
    [({"lang": "de"}, "de"), ({"lang": "xx"}, "*"), ({}, "en"), (None, "en"), ([], "en")],
)
def test_a_model_tells_its_language(tmp_path, meta, language):
    """In spaCy's description of it; one that tells none is English."""
    if meta is not None:
        (tmp_path / "meta.json").write_text(json.dumps(meta))

    assert NameModel(str(tmp_path)).language == language


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        (None, {None: None}),
        ("none", {None: "none"}),
        ("some_model", {None: "some_model"}),
        ("en=a,de=/path/b", {"en": "a", "de": "/path/b"}),
        (" EN = a , * = some/model ", {"en": "a", "*": "some/model"}),
        ("de=/path=b", {"de": "/path=b"}),
    ],
)
def test_the_setting_is_one_model_or_one_for_each_language(setting, expected):
    """Spaces do not matter."""
    assert parse_models(setting) == expected


@pytest.mark.parametrize(
    "setting", ["en=", "=a", "en=a,b", "a,b", "en=a,en=b", "english=a", "qq=a", ",", "en=a\nde=b,"]
)
def test_a_setting_that_makes_no_sense_is_refused(setting):
    """In one line, with what was expected."""
    with pytest.raises(ConfigurationError) as caught:
        load_settings(pii_model=setting)

    assert "MNEMOSCOPE_PII_MODEL" in str(caught.value)
    assert "expected" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_health_tells_each_model(with_models):
    """The worst one decides."""
    redactor, _ = with_models("en", "de")
    redactor._engine.models.by_language["de"].state = ModelState.MISSING
    check = look.names(redactor.health())

    assert redactor.health().is_degraded
    assert check.state is State.FAILED
    assert "in en, loaded" in check.detail
    assert "not installed; context rules alone find names in de" in check.detail


def test_one_model_is_told_as_before(with_models):
    """Without a language, which nobody named."""
    health = build_redactor(model="none", keys=with_models("en")[0]._operators._keys).health()

    assert health.others == ()
    assert look.names(health).detail == "no language model: context rules find names"
