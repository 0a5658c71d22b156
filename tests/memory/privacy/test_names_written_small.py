"""Names that chats, lists and forms write in another way than sentences do."""

# ruff: noqa: RUF001 - words in the letters of their languages

import pytest

from mnemoscope.memory.privacy.detectors.known_identifiers import KnownIdentifiers
from mnemoscope.memory.privacy.detectors.person_evidence import Reading
from mnemoscope.memory.privacy.detectors.person_written_small import find_small_names

_GREETED = {
    "de": ("hallo {}, kommst du heute abend?", "sabine"),
    "fr": ("salut {}, tu viens ce soir ?", "mathilde"),
    "es": ("hola {}, ¿vienes esta noche?", "lorena"),
    "it": ("ciao {}, vieni stasera?", "raffaele"),
    "pt": ("oi {}, você vem hoje?", "tatiana"),
    "nl": ("hoi {}, kom je vanavond?", "marieke"),
    "pl": ("cześć {}, przyjdziesz dziś?", "zuzanna"),
    "cs": ("ahoj {}, přijdeš dnes?", "zdenka"),
    "sv": ("hej {}, kommer du ikväll?", "torbjörn"),
    "tr": ("merhaba {}, akşam geliyor musun?", "ayşe"),
    "ru": ("привет {}, ты придёшь сегодня?", "игорь"),
    "uk": ("привіт {}, ти прийдеш сьогодні?", "тарас"),
    "el": ("γεια σου {}, έρχεσαι απόψε;", "ελένη"),
    "en": ("hey {}, are you coming tonight?", "imogen"),
}


def _found(redactor, text, entity="PERSON"):
    spans = redactor._engine.find(text, KnownIdentifiers(()))
    return [text[each.start : each.end] for each in spans if each.entity == entity]


@pytest.mark.parametrize("language", _GREETED)
def test_a_name_written_small_is_found_behind_a_greeting(redactor, language):
    """Whatever the language, if it is a known name and no word."""
    template, name = _GREETED[language]

    assert _found(redactor, template.format(name)) == [name]


@pytest.mark.parametrize("language", _GREETED)
def test_the_speakers_of_a_chat_are_found(redactor, language):
    """All of them, if one has a known name."""
    text, name = _GREETED[language]
    chat = f"{name}: {text.format('xx')}\nqwexy: {text.format('xx')}"

    assert {name, "qwexy"} <= set(_found(redactor, chat))


@pytest.mark.parametrize(
    "text",
    [
        "user: what is my plan?\nassistant: the team plan",
        "hey will, mark may have hope",
        "grazie mille, a domani",
        "the rose and the iris are in bloom, grace be with you",
        "ahoj lásko, víra a naděje",
        "вера и надежда: это любовь",
        "bahar geldi, deniz çok güzel",
        "INFO anna.service started, host=adam",
    ],
)
def test_words_that_are_names_too_stay_where_they_are_small(text):
    """They are words, unless a capital says otherwise."""
    script = "cyrillic" if "\u0400" < text[0] < "\u0500" else "latin"

    assert list(find_small_names(Reading(text, script))) == []


@pytest.mark.parametrize("suffix", ["'nin", "'ye", "'yi", "'den", "'yle", "'deki", "\u2019nin"])
def test_a_turkish_suffix_belongs_to_the_name(redactor, suffix):
    """What an apostrophe joins to it is replaced with it."""
    assert _found(redactor, f"Dün Ayşe{suffix} konuştuk ve çok güzel oldu.") == [f"Ayşe{suffix}"]


def test_a_turkish_suffix_makes_nobody_else(make):
    """The same person has the same pseudonym in every case."""
    redaction = make(operators={"PERSON": "pseudonym"}).begin()

    plain, *others = (
        redaction.text(f"Dün {each} için çok güzel bir gün oldu.").split()[1]
        for each in ("Ayşe", "Ayşe'nin", "Ayşe'ye")
    )

    assert [plain] * 2 == others


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Patient: Attenborough, Isaiah\nAge: 40", "Attenborough, Isaiah"),
        ("   name    Umlauf, Hartmut\n   city", "Umlauf, Hartmut"),
        ("  opiekun: D. Maciejewski\n", "D. Maciejewski"),
        ("Achternaam: van der Aa\nVoornaam: Carolien", "van der Aa"),
        ("Nom : Le Goff\nPrénom : Inès", "Le Goff"),
        ("Gentile dott.ssa La Rosa, la fattura è pronta.", "La Rosa"),
        ("liên hệ La Văn Phúc từ hôm qua", "La Văn Phúc"),
        ("vũ thị minh oanh: chào bạn", "vũ thị minh oanh"),
        ("原田に引き継ぎます", "原田"),
        ("請找小王，谢谢", "小王"),
    ],
)
def test_a_name_is_found_in_the_form_of_lists_and_forms(redactor, text, name):
    """Family name first, an initial, a particle, Vietnamese and East Asian order."""
    assert name in _found(redactor, text)


@pytest.mark.parametrize(
    "text", ["In Paris, Anna slept.", "Section: A. Overview\n", "đường Lý Thường Kiệt rất dài"]
)
def test_a_sentence_and_a_street_are_no_list(redactor, text):
    """A comma, a letter and a family name alone say nothing."""
    assert all(len(each.split()) == 1 for each in _found(redactor, text))
