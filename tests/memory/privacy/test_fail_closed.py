"""What cannot be redacted raises: it is not passed on, and the error quotes nothing."""

import threading
import time
import traceback

import pytest
from presidio_analyzer import EntityRecognizer, Pattern, PatternRecognizer, RecognizerResult

from mnemoscope.memory import ConfigurationError, RedactionError
from mnemoscope.memory.privacy.engine import engine as engine_module
from mnemoscope.memory.privacy.engine import gate
from mnemoscope.memory.privacy.engine.redactor import Limits
from mnemoscope.memory.privacy.models.custom_recognizers import MAX_TIMEOUTS
from tests.kit.patience import GIVE_UP_S

TEXT = "the secret word is xyzzy"


class Misbehaving(EntityRecognizer):
    """Does whatever it is told to."""

    def __init__(self, does):
        self.does = does
        super().__init__(supported_entities=["WORD"])

    def load(self):
        """Nothing to load."""

    def analyze(self, text, entities, nlp_artifacts=None):
        return self.does(text)


def answer(start, end, entity="WORD", score=0.9):
    return lambda text: [RecognizerResult(entity, start, end, score)]


def test_recognizers_of_the_users_are_asked(make):
    """A recognizer from Presidio's own classes works, and its entity is replaced by default."""
    recognizer = PatternRecognizer("MAGIC", patterns=[Pattern("xyzzy", "xyzzy", 0.9)])
    redaction = make(recognizers=[recognizer]).begin()

    assert redaction.text(TEXT) == "the secret word is <MAGIC>"
    assert redaction.counts == {"MAGIC": 1}


@pytest.mark.parametrize(
    "does",
    [
        answer(-1, 5),
        answer(0, 10_000),
        answer(5, 5),
        answer(6, 5),
        answer("0", 5),
        answer(0.0, 5),
        answer(None, 5),
        answer(True, 5),
        answer(0, 5, entity=None),
        answer(0, 5, entity="<script>"),
        answer(0, 5, score="high"),
        lambda text: 7,
        lambda text: [text],
    ],
)
def test_nonsense_is_refused(make, does):
    """A span that is not in the text, or is none, fails the redaction."""
    redaction = make(recognizers=[Misbehaving(does)]).begin()

    with pytest.raises(RedactionError):
        redaction.text(TEXT)


def test_no_answer_is_an_answer(make):
    """None means that nothing was found."""
    assert make(recognizers=[Misbehaving(lambda text: None)]).begin().text(TEXT) == TEXT


@pytest.mark.fault(64, "a recognizer raises", expected="nothing raw is written")
@pytest.mark.parametrize("error", [ValueError, RuntimeError, SystemExit, KeyboardInterrupt])
def test_a_recognizer_that_raises_fails_the_redaction(make, error):
    """Whatever it raises, nothing is passed, and no part of the chain quotes the text."""

    def does(text):
        raise error(text)

    redaction = make(recognizers=[Misbehaving(does)]).begin()

    with pytest.raises(RedactionError, match=error.__name__) as caught:
        redaction.value({"a": TEXT})

    assert "xyzzy" not in "".join(traceback.format_exception_only(caught.value))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.fault(66, "a recognizer hangs", expected="given up, nothing raw is written")
def test_a_recognizer_that_hangs_is_given_up(make):
    """It gets its time and no more; after a few it is not asked again, and still nothing passes."""
    release = threading.Event()
    redactor = make(
        recognizers=[Misbehaving(lambda text: release.wait(GIVE_UP_S))], recognizers_s=0.02
    )
    started = time.monotonic()
    try:
        for attempt in range(MAX_TIMEOUTS + 3):
            with pytest.raises(RedactionError):
                redactor.begin().text(f"{TEXT} {attempt}")
    finally:
        release.set()

    assert time.monotonic() - started < 5


@pytest.mark.parametrize("is_prepared", [True, False])
def test_our_own_faults_fail_closed_too(make, monkeypatch, is_prepared):
    """A detector of ours that raises fails the redaction, by Presidio's engine and without it."""

    def broken(_detector, text, _features, _readings):
        raise ValueError(text)

    redactor = make()
    if is_prepared:
        assert redactor.prepare(GIVE_UP_S)
    else:
        redactor._make_analyzer = lambda: None
    redaction = redactor.begin()
    monkeypatch.setattr(gate, "find_with", broken)

    with pytest.raises(RedactionError, match="ValueError") as caught:
        redaction.text(f"{TEXT}, ask ada@example.com")

    assert "xyzzy" not in str(caught.value)
    assert caught.value.__context__ is None


def test_errors_are_not_cached(make, monkeypatch):
    """What failed once is tried again."""
    redactor = make()
    with monkeypatch.context() as patch:
        patch.setattr(engine_module, "extract_features", lambda text: 1 / 0)
        with pytest.raises(RedactionError):
            redactor.begin().text(TEXT)

    assert redactor.begin().text(TEXT) == TEXT


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_leaving_the_program_is_not_swallowed(make, monkeypatch, error):
    """What is not an Exception passes through as it is."""

    def leave(text):
        raise error

    monkeypatch.setattr(engine_module, "extract_features", leave)

    with pytest.raises(error):
        make().begin().text(TEXT)


@pytest.mark.parametrize("value", [None, 7, b"x", ["x"]])
def test_text_that_is_no_text_is_refused(redaction, value):
    """`text` takes text: a wrong type is an error, not a pass."""
    with pytest.raises(RedactionError):
        redaction.text(value)


@pytest.mark.parametrize("name", Limits.__slots__)
def test_limits_must_be_positive(name):
    """A limit of nothing is a mistake of configuration."""
    with pytest.raises(ConfigurationError, match=name):
        Limits(**{name: 0})
