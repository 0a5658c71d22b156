"""The language of a text: told by script, small words and letters, or not at all."""

# ruff: noqa: RUF001 - letters of other scripts

from __future__ import annotations

import random
import time

import pytest

from mnemoscope.memory.privacy.detectors.language import (
    MOST_CHARS,
    identify_language,
    known_languages,
)

SENTENCES = {
    "en": (
        "She told the whole family that the train would be late again.",
        "We need a quiet room with a view of the garden for three nights.",
        "the parcel was left with our neighbour on the second floor",
    ),
    "de": (
        "Der Zug nach Hamburg hatte gestern wieder eine Stunde Verspätung.",
        "Wir brauchen für drei Nächte ein ruhiges Zimmer mit Blick auf den Garten.",
        "Das Paket wurde bei den Nachbarn im zweiten Stock abgegeben.",
    ),
    "fr": (
        "Le train pour Lyon avait encore une heure de retard hier soir.",
        "Nous avons besoin d'une chambre calme avec vue sur le jardin.",
        "Le colis a été laissé chez les voisins du deuxième étage.",
    ),
    "es": (
        "El tren de Sevilla llegó ayer otra vez con una hora de retraso.",
        "Necesitamos una habitación tranquila con vistas al jardín para tres noches.",
        "Dejaron el paquete con los vecinos del segundo piso.",
    ),
    "it": (
        "Il treno per Bologna ieri era di nuovo in ritardo di un'ora.",
        "Abbiamo bisogno di una camera tranquilla con vista sul giardino.",
        "Il pacco è stato lasciato dai vicini del secondo piano.",
    ),
    "pt": (
        "O trem para Coimbra chegou ontem outra vez com uma hora de atraso.",
        "Precisamos de um quarto tranquilo com vista para o jardim por três noites.",
        "A encomenda foi deixada com os vizinhos do segundo andar.",
    ),
    "nl": (
        "De trein naar Utrecht had gisteren weer een uur vertraging.",
        "Wij zoeken een rustige kamer met uitzicht op de tuin voor drie nachten.",
        "Het pakket is bij de buren op de tweede verdieping afgegeven.",
    ),
    "pl": (
        "Pociąg do Gdańska był wczoraj znowu opóźniony o godzinę.",
        "Potrzebujemy cichego pokoju z widokiem na ogród na trzy noce.",
        "Paczka została u sąsiadów na drugim piętrze.",
    ),
    "cs": (
        "Vlak do Brna měl včera zase hodinu zpoždění, ale nikdo to neřekl.",
        "Potřebujeme tichý pokoj s výhledem do zahrady na tři noci.",
    ),
    "sv": (
        "Tåget till Malmö var igår en timme försenat igen.",
        "Vi behöver ett lugnt rum med utsikt över trädgården i tre nätter.",
    ),
    "da": (
        "Toget til Odense var i går igen en time forsinket, og det blev ikke sagt.",
        "Pakken blev afleveret hos naboerne på anden sal af et bud.",
    ),
    "fi": (
        "Juna oli eilen taas tunnin myöhässä, ja se ei ole hyvä.",
        "Paketti on nyt naapurin luona, mutta hän ei ole kotona.",
    ),
    "tr": (
        "Ankara treni dün yine bir saat gecikti ve çok yoğun oldu.",
        "Üç gece için bahçe manzaralı sessiz bir oda istiyoruz.",
    ),
    "hu": (
        "A vonat tegnap megint egy órát késett, és nem volt hely.",
        "A csomag a szomszédnál van, mert senki nem volt otthon.",
    ),
    "ro": (
        "Trenul spre Cluj a avut ieri din nou o oră întârziere și era plin.",
        "Pachetul a fost lăsat la vecinii de la etajul doi.",
    ),
    "id": (
        "Kereta ke Bandung kemarin terlambat lagi dan kami tidak bisa duduk.",
        "Paket itu ada pada tetangga karena tidak ada orang di rumah.",
    ),
    "vi": ("Chuyến tàu đi Huế hôm qua lại trễ một giờ.", "Gói hàng đã được gửi cho hàng xóm."),
    "ru": ("Вчера поезд опять опоздал на час.", "Посылку оставили у соседей на втором этаже."),
    "uk": ("Учора потяг знову спізнився на годину.", "Пакунок залишили в сусідів, бо її не було."),
    "el": ("Το τρένο είχε χθες πάλι μία ώρα καθυστέρηση.",),
    "he": ("הרכבת איחרה אתמול שוב בשעה.",),
    "ar": ("تأخر القطار أمس مرة أخرى ساعة كاملة.",),
    "fa": ("قطار دیروز دوباره یک ساعت تأخیر داشت.",),
    "hi": ("कल ट्रेन फिर एक घंटा देर से आई।",),
    "th": ("เมื่อวานรถไฟมาสายอีกหนึ่งชั่วโมง",),
    "zh": ("昨天火车又晚点了一个小时。",),
    "ja": ("昨日も電車が一時間遅れました。",),
    "ko": ("어제 기차가 또 한 시간 늦었습니다.",),
}
"""Sentences of ours in each language."""

ALL = [(language, text) for language, texts in SENTENCES.items() for text in texts]
NO_LANGUAGE = (
    "",
    "   \n\t",
    "12:30 0x7f 3.14 ***",
    '{"id": 17, "sku": "AB-1", "title": "Walnut Desk Lamp", "tags": ["Home", "Office"]}',
    "2026-03-04 10:11:12,331 WARNING scrape.pool Target Down job=node attempt=3",
    'Traceback: File "/srv/app/queue.py", line 31, in <module> raise Empty()',
    "def find(self, text): return [Finding(each.start, each.end) for each in self._spans]",
    "Zorblax Quimby",
    "GET /v1/items/31 HTTP/1.1 200",
)


@pytest.mark.parametrize(("language", "text"), ALL)
def test_a_sentence_is_told(language, text):
    """By itself, in each of the languages."""
    assert identify_language(text) == language


@pytest.mark.parametrize("language", SENTENCES)
def test_a_longer_text_is_told_whatever_its_order(language):
    """Of several sentences in one language."""
    texts = list(SENTENCES[language])
    chosen = random.Random(language)  # noqa: S311 - the same in every run
    for _ in range(5):
        chosen.shuffle(texts)

        assert identify_language("\n".join(texts)) == language


@pytest.mark.parametrize("text", NO_LANGUAGE)
def test_what_is_no_sentence_has_no_language(text):
    """Then no model is asked."""
    assert identify_language(text) is None


@pytest.mark.parametrize(("language", "text"), [each for each in ALL if each[0] != "en"])
def test_a_name_does_not_make_a_text_english(language, text):
    """Nor does an English product, title or place."""
    assert identify_language(f"John Smith, New York Times: {text}") != "en"


@pytest.mark.parametrize("name", ["Tünde Hoffmann", "José de la Cruz", "Łukasz Żak", "Иван Петров"])
def test_a_name_of_elsewhere_leaves_a_text_english(name):
    """People of everywhere are written about in every language."""
    assert identify_language(f"{name} told the whole family that the train was late.") == "en"


def test_it_looks_at_the_beginning_only():
    """So that it takes no longer for a longer text."""
    english = "The train was late again and nobody told us why. " * 20
    assert len(english) > MOST_CHARS

    assert identify_language(english + "Der Zug war zu spät und das ist nicht gut. " * 100) == "en"


@pytest.mark.parametrize(
    "hostile", ["a" * 100_000, "é" * 100_000, "de " * 40_000, "'-" * 50_000], ids=range(4)
)
def test_hostile_text_takes_no_time(hostile):
    """It is cut off first."""
    began = time.thread_time()
    identify_language(hostile)

    assert time.thread_time() - began < 0.5


def test_every_language_that_has_sentences_here_can_be_configured():
    """A model can be named for it."""
    assert known_languages() >= SENTENCES.keys()
