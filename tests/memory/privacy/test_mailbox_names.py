"""Tests of names that stand before an e-mail address in angle brackets."""

import pytest

NAMED = [
    "From: Quillon Brackwater <q7@mail.example>",
    "ถึง: ฟ้าใส ดาวเรือง <q7@mail.example>",
    "ถึง: มานี รักเรียน <m4@mail.example>",
    '收件人: "欧阳润泽" <q7@mail.example>, 林晓梅 <x@mail.example>',
    "받는 사람: 하늘별 <q7@mail.example>",
    "От: Зоряна Вербовая <q7@mail.example>",
    'Cc: "Þórdís Eyjólfsdóttir" <q7@mail.example>',
    "אל: כפיר אלמגור <q7@mail.example>",
]
UNNAMED = [
    "From: Billing Support <billing@shop.example>",
    "发件人: 客服中心 <support@shop.example>",
    "see the list <q7@mail.example>",
]


@pytest.mark.parametrize("text", NAMED)
def test_name_before_its_address_is_found_in_any_script(redaction, text):
    """No list needs to know a name that is written before its own address."""
    redacted = redaction.text(text)

    name = text.partition(": ")[2].partition(" <")[0].strip('"')
    assert not any(word in redacted for word in name.split())


@pytest.mark.parametrize("text", UNNAMED)
def test_words_before_an_address_are_no_name(redaction, text):
    """A team or a word of a sentence stays."""
    assert redaction.text(text).partition(" <")[0] == text.partition(" <")[0]


HALF_READ = pytest.mark.xfail(
    strict=True, reason="the model of names reads the second half of this Thai name alone"
)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"ชื่อ": "ฟ้าใส ดาวเรือง", "x": 1}', marks=HALF_READ),
        '{"姓名": "欧阳润泽", "x": 1}',
    ],
)
def test_label_in_quotes_is_a_label(redaction, text):
    """JSON quotes the labels of scripts without spaces too."""
    name = text.split('"')[3]
    assert not any(word in redaction.text(text) for word in name.split())


@pytest.mark.parametrize("text", ["менеджер: Бондарь Л. Ц.", "Regards, Quentin B."])
def test_dot_of_a_last_initial_is_part_of_the_name(redaction, text):
    """Nothing of an initial stays."""
    assert not redaction.text(text).endswith(".")
