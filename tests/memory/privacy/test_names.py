"""Names of people as the learned model reads them: questions, chats, repetition, odd text."""

import json
import threading
from pathlib import Path

import pytest

from mnemoscope.memory.privacy.detectors.finding import Finding
from mnemoscope.memory.privacy.detectors.prefilter import extract_features
from mnemoscope.memory.privacy.names import find
from mnemoscope.memory.privacy.names.weighing import NOTHING, LanguageReading, read_weights

CONVERSATIONS = Path(__file__).parents[4] / "shared/data/locomo"
LEAST_FOUND = 0.97

QUESTIONS = {
    "en": ("What did {} say about the trip?", "{} said a lot about the trip."),
    "de": ("Was hat {} über die Reise gesagt?", "{} hat viel über die Reise gesagt."),
    "fr": ("Qu'est-ce que {} a dit du voyage ?", "{} a beaucoup parlé du voyage."),
    "es": ("¿Qué dijo {} sobre el viaje?", "{} dijo mucho sobre el viaje."),
    "it": ("Che cosa ha detto {} del viaggio?", "{} ha detto molto del viaggio."),
    "pt": ("O que {} disse sobre a viagem?", "{} disse muito sobre a viagem."),
    "nl": ("Wat zei {} over de reis?", "{} zei veel over de reis."),
    "pl": ("Co {} powiedziała o podróży?", "{} powiedziała dużo o podróży."),
    "sv": ("Vad sa {} om resan?", "{} sa mycket om resan."),
    "da": ("Hvad sagde {} om rejsen?", "{} sagde meget om rejsen."),
}
NAMES = (
    *("Sarah", "Anna", "Maria", "Julia", "Laura", "Sofia", "Emma", "Nina", "Clara", "Lena"),
    *("Alice", "Hannah", "Lisa", "Marie", "Elena", "Monika", "Karin", "Ingrid", "Paula", "Rosa"),
    *("Robert", "Paul", "Michael", "Stefan", "Anton", "Jonas", "Erik", "Pedro", "Hugo", "Tom"),
    *("Peter", "Thomas", "Daniel", "Martin", "Lucas", "David", "Simon", "Oscar", "Marco", "Felix"),
)


def found_in(text, reading=None):
    """Return the names in *text*."""
    return {
        text[each.start : each.end]
        for each in find.find_persons(text, extract_features(text), reading)
    }


@pytest.mark.parametrize("language", QUESTIONS)
def test_a_first_name_in_a_question_is_found_as_in_a_statement(language):
    """A recall is a question: its pseudonym has to be that of the memory."""
    question, statement = QUESTIONS[language]
    asked = [name for name in NAMES if name in found_in(question.format(name))]
    said = [name for name in NAMES if name in found_in(statement.format(name))]

    assert len(asked) >= 0.94 * len(said)
    assert len(said) >= 0.95 * len(NAMES)


@pytest.mark.skipif(not CONVERSATIONS.exists(), reason="the conversations are not of the project")
def test_speakers_are_found_in_questions_about_a_conversation():
    """In those of two long conversations that other people wrote."""
    asked = missed = 0
    for path in sorted(CONVERSATIONS.glob("*.json")):
        conversation = json.loads(path.read_text("utf-8"))
        for each in conversation["qa"]:
            for name in (conversation["speaker_a"], conversation["speaker_b"]):
                if name in each["question"]:
                    asked += 1
                    missed += not any(name in found for found in found_in(each["question"]))

    assert missed <= (1 - LEAST_FOUND) * asked


@pytest.mark.parametrize("text", ["Anna: ok\nJan: yes", "anna: ok\nlena: see you"])
def test_those_who_speak_in_a_chat_are_found(text):
    """However small they write their names."""
    assert len(found_in(text)) == 2


def test_a_list_of_names_is_found_whole():
    """Each name is evidence for those beside it."""
    names = {"Rogelio", "Sharon", "Jessica", "Chloe", "Andrea", "Brandi"}

    assert found_in("They had 6: Rogelio, Sharon, Jessica, Chloe, Andrea and Brandi.") == names


def test_names_in_a_text_without_offsets_of_its_own_are_found_where_they_stand():
    """A lone surrogate, a NUL and an accent of its own change no offset."""
    text = "\ud800 a\x00 e\u0301 and my name is Anna Smith."

    assert "Anna Smith" in found_in(text)


def test_what_is_surely_a_name_is_one_wherever_a_long_text_repeats_it():
    """It was read in pieces, of which one may say little about it."""
    text = "I met Melanie Quxley. Then I saw Quxley, and not quxley."
    sure = Finding(6, 20, "PERSON", 0.74, "the model of names")

    found = [text[each.start : each.end] for each in find.find_repeated_names(text, [sure])]

    assert found == ["Melanie", "Quxley", "Quxley"]


@pytest.mark.parametrize("model", ["names", "names_english"])
def test_a_language_model_adds_to_the_evidence(model):
    """What it reads as a person is likelier one than what it has seen and not read as one."""
    weights = read_weights(model)

    assert weights.weigh(0.4, "PERSON") > 0.5 > weights.weigh(0.4, "nothing")


def test_what_a_language_model_was_not_shown_it_says_nothing_about():
    """In a text of two languages it reads one of them."""
    reading = LanguageReading([Finding(0, 4, "LOCATION", 0.8, "language model")], [(0, 10)])

    assert [reading.label_at(0, 4), reading.label_at(5, 9), reading.label_at(12, 15)] == [
        "LOCATION",
        "nothing",
        None,
    ]


class Unsure:
    """A model that takes each word for a name with the same odds, a little below even ones."""

    def read(self, attributes):
        return [find.ItemReading(0.45, continues=True) for _ in attributes]


def test_what_a_language_model_reads_weighs_for_and_against(monkeypatch):
    """Where it has read a word and takes it for no name, the word has to be likelier by itself."""
    monkeypatch.setattr(find, "load", lambda _name: Unsure())
    weights = find.Weights(0.0, 1.0, {"PERSON": 1.0, "nothing": -1.0})
    monkeypatch.setattr(find, "read_weights", lambda _name: weights)
    text, person = "Then Quxley came", Finding(5, 11, "PERSON", 0.8, "language model")

    assert found_in(text) == {"Quxley"}
    assert found_in(text, LanguageReading([], [(0, len(text))])) == set()
    assert found_in(text, LanguageReading([person], [(0, len(text))])) == {"Quxley"}


def test_a_name_with_a_dash_behind_its_particle_is_one():
    """As news sites write Arabic names. A job behind a dash is no part of one."""
    assert found_in("The cleric Mustafa al - Sadr said so.") == {"Mustafa al - Sadr"}
    assert "Leila Hashimi" in found_in("Talk to Leila Hashimi - Analyst")


def test_keywords_of_code_are_nobody():
    """Else and Elif are given names, and every second function had them."""
    code = "if found:\n    return\nelif wanted:\n    wait()\nelse:\n    stop()\n"

    assert found_in(code) == set()
    assert found_in("My name is Else.") == {"Else"}


def test_threads_read_the_same():
    """They share one model, which holds the items of one text at a time."""
    texts = [f"{name} met {other} in town." for name in NAMES for other in NAMES]
    alone = [found_in(text) for text in texts]
    together: dict[int, list[set[str]]] = {}

    def read(number):
        together[number] = [found_in(text) for text in texts]

    threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert all(found == alone for found in together.values())


def test_what_is_kept_of_words_shows_none():
    """In a traceback of a crash reporter, say."""
    text = "my name is Anna Smith"
    kept = type(find.shared_words())()
    shown = [repr(each) for each in find.read_sequences(text, kept)]

    assert shown
    assert not any("Anna" in each for each in [*shown, repr(kept), repr(kept["Anna"])])


def test_words_are_kept_within_bounds(monkeypatch):
    """However many words texts have, and however long they are, memory stays flat."""
    monkeypatch.setattr("mnemoscope.memory.privacy.names.words._MOST_KEPT", 10)
    kept = type(find.shared_words())()

    for number in range(100):
        assert kept[f"Quorl{'a' * number}"].text == f"Quorl{'a' * number}"

    assert len(kept) <= 10
    assert max(map(len, kept)) <= 32


@pytest.mark.parametrize("text", ["Jon: Woah! Nice", "Melanie: Absolutely! It was", "Bye!"])
def test_an_interjection_alone_is_no_name(redactor, text):
    """It is how most of what is said in a chat begins."""
    speaker, colon, said = text.rpartition(": ")

    assert redactor.begin().text(text) == (f"<PERSON>{colon}{said}" if speaker else text)


def test_a_name_behind_an_escape_leaves_the_escape_whole(redactor):
    """A JSON text is one afterwards, too."""
    assert redactor.begin().text(r'{"a": "x\nAnna Smith said"}') == r'{"a": "x\n<PERSON> said"}'


@pytest.mark.parametrize("model", ["names", "names_unspaced"])
def test_a_word_is_undecided_where_labels_decide(model):
    """For each probability: some label makes it a name, and another one none."""
    weights = read_weights(model)
    for probability in (each / 100 for each in range(101)):
        found = {weights.weigh(probability, label) >= 0.42 for label in (*weights.labels, NOTHING)}

        assert weights.may_turn(probability, 0.42) is (len(found) == 2)


@pytest.mark.parametrize(
    "label",
    ["F. Nac.: 4/5/1971", "D. Nasc.: 4/5/1971", "N. Exped.: 50 213", "Geb. Dat.: 4.5.1971"],
)
def test_a_label_of_a_form_that_is_abbreviated_is_nobody(label):
    """Its first word looks like an initial."""
    assert found_in(label) == set()
    assert found_in(f"Nombre: Lorena Quintana. {label}") == {"Lorena Quintana"}
