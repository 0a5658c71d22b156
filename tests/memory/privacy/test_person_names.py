"""Names of people without a model: in 25 languages, and what must not be taken for one."""

# ruff: noqa: RUF001 - letters of other scripts are meant

import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemoscope.memory.privacy.detectors import lexicon
from mnemoscope.memory.privacy.detectors.prefilter import extract_features
from mnemoscope.memory.privacy.names.find import find_persons
from tests.kit.growth import grows_in_proportion
from tests.kit.lengths import examples

SENTENCES = json.loads(Path(__file__).with_name("person_sentences.json").read_text("utf-8"))
"""By language: templates, names for them, and sentences without a name. Written for these tests."""

SURE_OF_ONE = pytest.mark.xfail(
    strict=True, reason="the model of names takes this club of two family names for a person"
)
UNSURE_OF_ONE = pytest.mark.xfail(
    strict=True, reason="the model of names is unsure of this name, which no real Russian taught it"
)
LEAST_FOUND = 0.9
MOST_WRONG = 0.12
LEAST_FOUND_UNLEARNED, MOST_WRONG_UNLEARNED = 0.85, 0.55
LEARNED = {"en", "pt", "da", "sv", "zh", "de", "es", "fr"}
"""
Languages of which the model has learned real sentences. The sentences without a name are the hard
ones: streets, works, words that are names.
"""

SPACED = [each for each in SENTENCES if each not in {"zh", "ja", "ko", "th"}]
LETTER = re.compile(r"[^\W\d_]")


def persons(redactor, text):
    """Return what is taken for a name."""
    return [text[f.start : f.end] for f in redactor.explain(text) if f.entity == "PERSON"]


def is_covered(redactor, text, name):
    """Return whether every letter of the name is replaced."""
    start = text.index(name)
    covered = {at for found in redactor.explain(text) for at in range(found.start, found.end)}
    wanted = {start + at for at, char in enumerate(name) if not char.isspace()}
    return wanted <= covered


@pytest.mark.parametrize("language", SENTENCES)
def test_most_names_are_found(redactor, language):
    """By what stands beside them and by lists, in every language."""
    cases = [
        (template.format(name), name)
        for template, name in itertools.product(
            SENTENCES[language]["templates"], SENTENCES[language]["names"]
        )
    ]
    missed = [text for text, name in cases if not is_covered(redactor, text, name)]

    least = LEAST_FOUND if language in LEARNED else LEAST_FOUND_UNLEARNED

    assert len(missed) <= (1 - least) * len(cases), missed[:5]


@pytest.mark.parametrize("language", SENTENCES)
def test_few_other_words_are_taken_for_names(redactor, language):
    """Streets, greetings to everybody, works, months, and names that are ordinary words."""
    sentences = SENTENCES[language]["without"]
    wrong = [(text, found) for text in sentences if (found := persons(redactor, text))]

    most = MOST_WRONG if language in LEARNED else MOST_WRONG_UNLEARNED

    assert len(wrong) <= max(1, most * len(sentences) + 1), wrong


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Hey Sam. Can't wait to see you", ["Sam"]),
        ("Thanks Jon. Dancing is fun", ["Jon"]),
        ("Wow Melanie, great news", ["Melanie"]),
        ("Gonna continue my studies", []),
        ("We landed in San Francisco and drove to San Jose.", []),
        ("They play for Chelsea FC against Leeds United.", []),
        pytest.param("They play for Chelsea FC against Aston Villa.", [], marks=SURE_OF_ONE),
        ("Turn left at Lincoln Avenue.", []),
        ("Jenkins and Prometheus are down again.", []),
        ("Lately, Grafana shows spikes. Congrats!", []),
        ("Additionally, I tried again. Optionally, you can skip it.", []),
        ("Intel Core Processor: Performance Events", []),
        ("La rue Victor Hugo est fermée.", []),
        ("La calle Miguel de Cervantes está cerrada.", []),
        ("Вчера Вера звонила", ["Вера"]),
        ("Der Richter urteilt.", []),
    ],
)
def test_a_name_is_told_from_what_looks_like_one(redactor, text, names):
    """By its sentence, the place beside it, known works, and words of the language."""
    assert persons(redactor, text) == names


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Proszę przekazać to Annie.", "Annie"),
        ("Volal jsem Martinovi kvůli faktuře.", "Martinovi"),
        ("Передайте это Марине, пожалуйста.", "Марине"),
        pytest.param("Передайте это Наталье, пожалуйста.", "Наталье", marks=UNSURE_OF_ONE),
        ("Я зустрів Тараса вчора.", "Тараса"),
        ("Ahmet'in faturası nerede?", "Ahmet"),
        ("Пишу Сергею про договор.", "Сергею"),
    ],
)
def test_an_inflected_name_is_found(redactor, text, name):
    """Its ending is undone in the languages that have it."""
    assert name in persons(redactor, text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("王先生明天来", "王"),
        ("연락처: 박서준", "박서준"),
        ("김 대리님은 박서준 씨와 만났다", "박서준"),
        ("田中さんと会議", "田中"),
        ("شكرا لمحمد على المساعدة", "محمد"),
        ("זה של דנה לוי", "דנה לוי"),
    ],
)
def test_a_name_ends_before_what_is_written_onto_it(redactor, text, name):
    """Honorifics, particles and prepositions stay."""
    assert name in persons(redactor, text)


ANY = settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
PIECES = st.one_of(
    st.sampled_from([each for by in SENTENCES.values() for each in by["names"]]),
    st.sampled_from([each for lang in SPACED for each in SENTENCES[lang]["without"]]),
    st.sampled_from(
        ["Hey ", ". ", "! ", " and ", "\n", ", ", "na ", "'s ", "-", "_", "Dear ", "x"]
    ),
    st.text(max_size=12),
)


@ANY
@given(st.lists(PIECES, max_size=8).map("".join))
def test_a_span_ends_at_the_borders_of_words(text):
    """Never inside a word, in the scripts that write spaces; never empty."""
    for found in find_persons(text, extract_features(text)):
        assert 0 <= found.start < found.end <= len(text)
        last, after = text[found.end - 1], text[found.end : found.end + 1]
        if last < "\u0370" and after and after < "\u0370":
            assert not (LETTER.match(last) and LETTER.match(after)), (found.why, after)


@ANY
@given(
    st.lists(
        st.sampled_from(["Sam", "Jon", "Ada Byron", "Melanie", "Kim"]), min_size=2, max_size=4
    ),
    st.sampled_from([". ", "! ", "? ", "... ", ".\n"]),
)
def test_a_span_stays_within_its_sentence(names, end):
    """However short the name before the full stop is."""
    text = end.join(names) + end

    for found in find_persons(text, extract_features(text)):
        assert not re.search(r"[.!?\n]", text[found.start : found.end])


def test_the_lists_are_read_when_a_text_needs_them():
    """Importing and building read none: an application that stores no text pays nothing."""
    code = (
        "from mnemoscope.memory.privacy.engine.redactor import build_redactor\n"
        "from mnemoscope.memory.privacy.detectors.lexicon import read_sections\n"
        "from mnemoscope.telemetry.event.subject import SubjectKeys\n"
        "redactor = build_redactor(model='none', keys=SubjectKeys(bytes(range(32))))\n"
        "print(read_sections.cache_info().currsize)\n"
        "redactor.explain('Anna is on the team')\n"
        "print(read_sections.cache_info().currsize)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    built, read = map(int, run.stdout.split())

    assert built == 0
    assert read == len(lexicon.LANGUAGES)


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize(
    "piece",
    ["Anna ", "Mr ", "Dear Xq ", "王", "คุณ", "김", "محمد ", "さん", "Name: ", "Jean-", "A. ", "я "],
)
def test_hostile_text_takes_linear_time(piece):
    """Ten times the text takes about ten times as long."""
    text = piece * (40_000 // len(piece))

    assert grows_in_proportion(lambda each: list(find_persons(each, extract_features(each))), text)


def test_every_language_is_read_with_its_script():
    """A file that no script names would never be read."""
    folder = Path(lexicon.__file__).with_name("data") / "persons"
    read = {language for languages in lexicon.SCRIPTS.values() for language in languages}

    assert {path.stem for path in folder.glob("*.txt")} == read


@pytest.mark.parametrize(
    "language", [each for languages in lexicon.SCRIPTS.values() for each in languages]
)
def test_a_file_of_names_says_where_it_is_from(language):
    """In the comment at its head."""
    path = Path(lexicon.__file__).with_name("data") / "persons" / f"{language}.txt"

    assert "Origin:" in path.read_text("utf-8").split("[", 1)[0]
