"""E-mail addresses, telephone numbers and postal addresses in 25 languages, and what is none."""

# ruff: noqa: E501, RUF001 - samples are as long as they are, in the letters of their languages

from collections import Counter

import pytest

from tests.kit.contact_texts import LANGUAGES, contact_texts

LEAST = {"e-mail": 1.0, "e-mail disguised": 0.97, "phone": 0.95, "phone bare": 0.85, "address": 0.9}
KINDS = ("PHONE_NUMBER", "EMAIL_ADDRESS", "STREET_ADDRESS", "IP_ADDRESS", "MAC_ADDRESS")

NOTHING = [
    "w pozycjach 69-70 zapisano ST 1277 oraz KO 1314",
    "zapisano PR 9685 oraz ST 9722; kod służy do",
    "La dosis s/n. el paciente no tiene 2 números",
    "meet me at the dot",
    "We moved to Emma 1.8 in March.",
    "Returns the integer address packed as 16 bytes.",
    "It can send up to 10 BatchChange requests with it.",
    "Sent via the RFC 1870 protocol.",
    "boxes: 11 x trail mix",
    "at 5 dot 30 we go",
    "look at amazon dot com for it",
    "sign up at example.com today",
    "prices: 1 2 3 4 5 6 7 8 9",
    "0 1 1 0 1 0 1 1\n1 0 0 1 1 0 1 0",
    "x = a @ b\n@app.route('/x')\ndef f(): pass",
    "countdown: 5 - 4 - 3 - 2 - 1 - 0 - 0 go",
    "one two three four five six seven eight nine",
    "la chiocciola punto e basta",
    "dinner at eight, see https://menu.example/dinner-at-eight.html",
    "npm i react@latest and lodash@4.17.21",
    "tool@1.0.dev.3, icon@2x.co.png and web@example.com.service",
    "getty@tty1.service started, image@sha256:0a1b2c",
    "upgraded libfoo to 0.99.20-2",
    "order 026-1234567-1234567 was shipped",
    "978-0-19-852663-6 is the book",
    "call it the age of steam: 1830 - 1914",
    "Telefon wynalazł on (1847–1922).",
    "it lasted from 2001-2024 and cost 612 345 678 zł",
    "pos 48.8584, 2.2945 and 12.3456 / 78.9012",
    "2026-11-22 10:00:00 +0700 worker 12",
    "epoch 1732312345 and 1732312345678",
    "opening hours 0800-1600",
    "call_id=1732312345 returned",
    "Nº de pedido 612 345 678",
    "Bestellnummer 0171 3456789",
    "SKU 00278-2817 is sold out",
    "Wall Street fell 3 % on Monday",
    "on the road to 2030 we drive route 66",
    "GET /api/v1/street/12 HTTP/1.1",
    "Ich komme am 12. Mai, im Jahr 2024",
    "al lunedì 12 maggio, os dias 12 e 13",
    "Rue de la Paix est fermée pour 3 jours",
    "calle cerrada 3 días, avenida Paulista tem 3 km",
    "Via Roma 3 giorni chiusa, Rua Augusta 3 km de fila",
    "улица закрыта на 3 дня, в городе 5 улиц",
    "شارع مغلق لمدة 3 ايام",
    "今天是5月12号，坐地铁12号线",
    "3丁目の夕日、第2回東京都大会",
    "3월 12일 서울시",
    "đường dài 12 km",
    "- 6.9.11.60 (2024-01-02)\n- 6.9.11.59 (2023-12-02)",
    "openssl 6.9.11.60-r2, glibc==2.3.4.5, upgraded from 5.6.7.8 to 5.6.7.9",
    "2.1.3.4 Overview of the section",
    "listening on 127.0.0.1, 0.0.0.0, 10.0.0.7, 192.168.1.20 and fe80::1",
    "broadcast ff:ff:ff:ff:ff:ff",
    "add +1 202 555 014 to it",
    "mail root@localhost now",
]
FOUND = [
    ("PHONE_NUMBER", "my number is five five five one two three four five six seven", "five five five one two three four five six seven"),
    ("PHONE_NUMBER", "ruf mich an: null eins sieben eins drei vier fünf sechs sieben acht neun", "null eins sieben eins drei vier fünf sechs sieben acht neun"),
    ("PHONE_NUMBER", "appelle le zéro six un deux trois quatre cinq six sept huit", "zéro six un deux trois quatre cinq six sept huit"),
    ("PHONE_NUMBER", "mi teléfono es seis uno dos tres cuatro cinco seis siete ocho", "seis uno dos tres cuatro cinco seis siete ocho"),
    ("PHONE_NUMBER", "mój telefon: pięć zero jeden dwa trzy cztery pięć sześć siedem", "pięć zero jeden dwa trzy cztery pięć sześć siedem"),
    ("PHONE_NUMBER", "мой телефон: восемь девять один два три четыре пять шесть семь восемь девять", "восемь девять один два три четыре пять шесть семь восемь девять"),
    ("PHONE_NUMBER", "call double five five, one two three, four five six seven", "double five five, one two three, four five six seven"),
    ("PHONE_NUMBER", "手机号一三八零零一三八零零零", "一三八零零一三八零零零"),
    ("PHONE_NUMBER", "جوال ٠٥٥١٢٣٤٥٦٧", "٠٥٥١٢٣٤٥٦٧"),
    ("PHONE_NUMBER", "on 2024-05-01 0171 3456789 rang", "0171 3456789"),
    ("PHONE_NUMBER", "☎ 0711 / 123 45 67", "0711 / 123 45 67"),
    ("PHONE_NUMBER", "fale comigo no 96 123 45 67 hoje", "96 123 45 67"),
    ("US_SSN", "ssn 5 3 6 - 2 2 - 8 7 4 5", "5 3 6 - 2 2 - 8 7 4 5"),
    ("CREDIT_CARD", "my card 4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"),
    ("EMAIL_ADDRESS", "邮箱ada@example.com是我的", "ada@example.com"),
    ("EMAIL_ADDRESS", "reach me at ada.lovelace at gmail.com", "ada.lovelace at gmail.com"),
    ("STREET_ADDRESS", "Max\nMusterweg 12\n80331 München", "Musterweg 12\n80331 München"),
    ("STREET_ADDRESS", "Servicio. Avda. Carlos Haya, s/n. 29010 Málaga", "Avda. Carlos Haya, s/n"),
    ("STREET_ADDRESS", "Hermanos Falcó, s/n - 02006 Albacete", "Hermanos Falcó, s/n"),
    ("STREET_ADDRESS", "Marañón. Doctor Esquerdo, 46. 28007 Madrid", "Doctor Esquerdo, 46"),
    ("STREET_ADDRESS", "Av. Sapporo, 3, 5º-B. 28923 Alcorcón", "Av. Sapporo, 3, 5º-B"),
    ("STREET_ADDRESS", "Plaza San Francisco 7, 3D, Zaragoza", "Plaza San Francisco 7, 3D, Zaragoza"),
    ("STREET_ADDRESS", "send it to Postfach 12 34 56, 50667 Köln", "Postfach 12 34 56, 50667 Köln"),
    ("STREET_ADDRESS", "Flat 4B, Rose Apartments, MG Road, Pune 411001", "Flat 4B, Rose Apartments, MG Road, Pune 411001"),
    ("IP_ADDRESS", "my IP is 192.168.1.45", "192.168.1.45"),
    ("IP_ADDRESS", "login from 91.12.33.4 failed", "91.12.33.4"),
    ("MAC_ADDRESS", "mac 001a.2b3c.4d5e", "001a.2b3c.4d5e"),
]  # fmt: skip


@pytest.mark.parametrize("half", [0, 1], ids=["development", "evaluation"])
def test_contacts_are_found_in_every_language(redactor, half):
    """As many as before, whole, in each kind; in no language less than four in five."""
    wanted, found = Counter(), Counter()
    for sample in contact_texts(half):
        covered = {
            at for each in redactor.explain(sample.text) for at in range(each.start, each.end)
        }
        key = sample.kind, sample.language
        wanted[key] += 1
        found[key] += covered.issuperset(range(sample.start, sample.end))
    recall = {key: found[key] / wanted[key] for key in wanted}

    means = {kind: sum(recall[kind, code] for code in LANGUAGES) / len(LANGUAGES) for kind in LEAST}
    assert {kind: mean for kind, mean in means.items() if mean < LEAST[kind]} == {}
    languages = {
        code: sum(found[kind, code] for kind in LEAST) / sum(wanted[kind, code] for kind in LEAST)
        for code in LANGUAGES
    }
    assert {code: each for code, each in languages.items() if each < 0.8} == {}


@pytest.mark.parametrize(("entity", "text", "found"), FOUND, ids=lambda value: value[:40])
def test_disguises_and_odd_shapes_are_found_whole(redactor, entity, text, found):
    """The span in the original covers the identifier, and nothing beside it."""
    (finding,) = [each for each in redactor.explain(text) if each.entity == entity]

    assert text[finding.start : finding.end] == found


@pytest.mark.parametrize("text", NOTHING, ids=lambda text: text[:40])
def test_what_only_looks_like_a_contact_stays(redactor, text):
    """A disguise, a number or a street needs its whole shape."""
    found = [each.entity for each in redactor.explain(text) if each.entity in KINDS]

    assert found == []


def test_the_end_of_a_longer_number_is_no_telephone_number(redactor):
    """Such as an account's whose check digits are wrong, in a text with letters beyond ASCII."""
    text = "Rachunek PL46 0000 0000 2046 3409 7300 4502, płatność w środę"
    assert "PHONE_NUMBER" not in {each.entity for each in redactor.explain(text)}
