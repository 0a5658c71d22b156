"""
The extras for languages: what their packages read is weighed as any model's.

`make test-languages` installs them.
"""

from __future__ import annotations

import importlib.util
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from mnemoscope.memory.privacy.models.name_model import models_installed
from mnemoscope.memory.privacy.names import chinese, japanese, unspaced


def needs(*packages):
    """Skip a test where one of *packages* is not installed."""
    missing = [each for each in packages if importlib.util.find_spec(each) is None]
    return pytest.mark.skipif(
        bool(missing), reason=f"{', '.join(missing)} missing: `make test-languages` installs it"
    )


@pytest.fixture
def redact(make):
    """Return a function that redacts a text with all packages that are installed."""
    redactor = make(model=None)
    redactor.wait_until_loaded()
    return lambda text: redactor.begin().text(text)


class TestJapanese:
    """The extra ``ner-ja``: words and their kinds, as Sudachi tells them."""

    pytestmark = needs(*japanese.PACKAGES)

    def test_a_surname_is_told_from_a_city(self):
        """What the dictionary says of a word is what the model of names is shown."""
        kinds = [kind for kind, _ in japanese.load().kinds("山田さんは横浜にいる")]
        assert kinds[0] == "名詞-固有名詞-人名-姓"
        assert "名詞-固有名詞-地名-一般" in kinds

    def test_words_are_as_long_as_their_text(self):
        """So that each character has a word."""
        text = "ｱｲｳと㌔は🙂ではない。"
        assert sum(size for _, size in japanese.load().kinds(text)) == len(text)

    def test_threads_cut_at_once(self):
        """Sudachi's tokenizer refuses a second thread."""
        words, text = japanese.load(), "松友美佐紀は、日本のバドミントン選手。" * 15
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            with ThreadPoolExecutor(8) as pool:
                cut = list(pool.map(lambda _: list(words.kinds(text)), range(200)))
        finally:
            sys.setswitchinterval(before)
        assert cut == 200 * cut[:1]

    def test_a_text_without_kana_may_be_chinese(self):
        """Characters of both do not tell which it is."""
        assert japanese.is_japanese("田中さん")
        assert not japanese.is_japanese("王小明・李雷")

    @pytest.mark.parametrize(
        ("text", "name"),
        [
            ("鈴木亜久里は日本の元レーシングドライバーである。", "鈴木亜久里"),
            ("ダーヴラ・カーワンはアイルランドの女優である。", "カーワン"),
        ],
    )
    def test_a_person_is_replaced(self, redact, text, name):
        """A person whom the text only tells about."""
        assert name not in redact(text)

    def test_a_city_stays(self, redact):
        """A text about a place names nobody."""
        text = "大阪市は近畿地方の都市である。"
        assert redact(text) == text


class TestRussian:
    """The extra ``ner-ru``."""

    pytestmark = needs("natasha")

    def test_people_are_replaced(self, redact):
        """Names with endings, as the text has them."""
        redacted = redact("Вчера Сергею Петровичу позвонила Мария Иванова из Москвы.")
        assert "Петрович" not in redacted
        assert "Иванова" not in redacted

    def test_a_firm_stays(self, redact):
        """A text about a firm and a city names nobody."""
        text = "Компания «Ромашка» переехала в Москву."
        assert redact(text) == text


class TestChinese:
    """The extra ``ner-zh``: words, as jieba cuts them, are among what the model of names sees."""

    pytestmark = needs(*chinese.PACKAGES)

    def test_each_character_has_the_kind_of_its_word(self):
        """In traditional characters too, of which jieba's dictionary has few."""
        simple, traditional = (
            list(chinese.load().kinds(text)) for text in ("张建邦说", "張建邦說")
        )
        assert simple == traditional
        assert sum(size for _, size in simple) == 4

    def test_marks_are_added_to_what_is_read_without(self):
        """No attribute of a character goes."""
        text = "昨天王小明去了北京。"
        bare, cut = (
            next(iter(unspaced.read_sequences(text, each))).attributes
            for each in (None, chinese.load())
        )
        assert all(more[: len(few)] == few for few, more in zip(bare, cut, strict=True))
        assert any(len(more) > len(few) for few, more in zip(bare, cut, strict=True))

    def test_a_person_is_replaced(self, redact):
        """A person whom the text only tells about."""
        assert "張建邦" not in redact("張建邦擔任國防部副部長。")

    def test_a_text_of_another_script_is_not_cut(self):
        """Japanese has the same characters, and its own."""
        assert chinese.is_chinese("王小明")
        assert not chinese.is_chinese("田中さん")


class TestInstalled:
    """Which packages are used without a setting."""

    @needs("natasha")
    def test_a_package_that_is_installed_reads_its_language(self):
        """As the English model does."""
        assert models_installed()["ru"] == "natasha"

    def test_nothing_else_is_looked_for(self):
        """So that no warning is logged of a package that nobody asked for."""
        asked_for = {each for each in models_installed().values() if each is not None}
        assert all(map(importlib.util.find_spec, asked_for))
