"""The user's lists: what is never touched, what is always replaced, and how lines are refused."""

import uuid

import pytest
from langgraph.store.memory import InMemoryStore

from mnemoscope.memory import ConfigurationError, configure, context
from mnemoscope.memory.privacy.detectors.term_lists import read_term_lists
from tests.kit.growth import grows_in_proportion

ID = str(uuid.UUID(int=1 << 100, version=4))


@pytest.fixture
def with_lists(make, tmp_path):
    """Makes redactors with the lists that such files have."""

    def with_lists(*, allow="", deny="", **settings):
        (tmp_path / "allow").write_text(allow, "utf-8")
        (tmp_path / "deny").write_text(deny, "utf-8")
        lists = read_term_lists(tmp_path / "allow", tmp_path / "deny")
        return make(lists=lists, **settings)

    return with_lists


def test_an_allowed_term_stays(with_lists):
    """Whatever its case and the spaces in it; what else is found is replaced."""
    redactor = with_lists(allow="# ours\n\nRosalind Quimby\nhelp@acme.example\n")
    text = "My name is rosalind  quimby, help@acme.example or ada@acme.example"

    redacted = redactor.begin().text(text)

    assert redacted == "My name is rosalind  quimby, help@acme.example or <EMAIL_ADDRESS>"


def test_an_allowed_pattern_stays(with_lists):
    """It stands between slashes."""
    redactor = with_lists(allow=r"/[a-z]{1,20}@acme\.example/")

    assert redactor.begin().text("ada@acme.example") == "ada@acme.example"
    assert redactor.begin().text("ada@acme.com") == "<EMAIL_ADDRESS>"


def test_a_find_that_reaches_beyond_an_allowed_term_is_replaced(with_lists):
    """Half of an address is no term."""
    redactor = with_lists(allow="ada\nacme.example")

    assert redactor.begin().text("mail ada@acme.example") == "mail <EMAIL_ADDRESS>"


def test_the_callers_identifiers_are_replaced_all_the_same(with_lists):
    """They are the data subject's."""
    redaction = with_lists(allow="ada@acme.example").begin(known=["ada@acme.example"])

    assert redaction.text("mail ada@acme.example") == "mail <EMAIL_ADDRESS>"


@pytest.mark.parametrize(
    ("deny", "text", "redacted"),
    [
        ("Project Bluebird", "on project  bluebird today", "on <SECRET> today"),
        ("PERSON: Zorblax", "tea with zorblax's dog", "tea with <PERSON>'s dog"),
        (r"/PRJ-\d{4,6}/", "see PRJ-12345.", "see <SECRET>."),
        (r"DEVICE_ID: /rack-\d+/", "in rack-7", "in <DEVICE_ID>"),
        ("青鳥", "我喜歡青鳥計畫", "我喜歡<SECRET>計畫"),
        ("coffee", "coffee", "<SECRET>"),
        (r"/[0-9a-f]{8}-.*/", f"{ID}", "<SECRET>"),
        ("blue", "bluebird", "bluebird"),
        ("Bluebird", "QmVzdCBCbHVlYmlyZCBldmVy", "<SECRET>"),
        ("bluebird", "\uff22luebird", "<SECRET>"),
    ],
)
def test_a_denied_term_is_replaced(with_lists, deny, text, redacted):
    """As its entity, as a whole word, ordinary words, ids, base64 and disguises included."""
    assert with_lists(deny=deny).begin().text(text) == redacted


@pytest.mark.parametrize("text", ["coffee", ID, f"run_{ID}"])
def test_no_shortcut_passes_a_denied_term(with_lists, text):
    """Ids and labels are taken for clean without a search, unless a list has them."""
    redaction = with_lists(deny=f"coffee\n/{ID}/").begin()

    assert text not in redaction.label(text)
    assert text not in redaction.identifier(text)
    assert redaction.labels((text,)) != (text,)
    assert redaction.value({"a": [text]}) != {"a": [text]}


def test_a_denied_term_is_replaced_whatever_is_kept_and_allowed(with_lists):
    """Always is always."""
    redactor = with_lists(deny="PERSON: Zorblax", allow="zorblax", operators={"PERSON": "keep"})

    assert redactor.begin().text("tea with Zorblax") == "tea with <PERSON>"


def test_long_texts_are_searched_for_both(with_lists):
    """Window by window."""
    redactor = with_lists(deny="Bluebird", allow="ada@acme.example", max_chars=400_000)
    text = "lorem ipsum " * 12_000

    redacted = redactor.begin().text(f"{text}Bluebird ada@acme.example {text}Bluebird")

    assert redacted == f"{text}<SECRET> ada@acme.example {text}<SECRET>"


def test_what_an_allowed_term_kept_can_be_asked_for(with_lists):
    """With its rule, and not what it was."""
    redactor = with_lists(allow="ada@acme.example")

    (kept,) = redactor.allowed("mail ada@acme.example or bob@acme.example")

    assert (kept.start, kept.end, kept.entity) == (5, 21, "EMAIL_ADDRESS")


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+", "(a|ab)*c", "(?:a{1,9}){1,9}", "a*b*c", r"\d+-\d+-\d+", r"(.)\1", "(a?){30}"],
)
def test_a_pattern_that_could_take_long_is_refused(with_lists, pattern):
    """By the number of its line; the line is not quoted."""
    with pytest.raises(ConfigurationError) as raised:
        with_lists(deny=f"# comment\n/{pattern}/")

    assert str(raised.value).startswith("MNEMOSCOPE_PII_DENY: line 2: ")
    assert pattern not in str(raised.value)


@pytest.mark.parametrize("pattern", [r"PRJ-\d+", ".*x", r"\d{1,20}-[a-z]{1,20}", "[a-z]+[0-9]?"])
def test_a_pattern_that_is_taken_is_fast(with_lists, pattern):
    """On text that almost matches, as long as texts get."""
    redactor = with_lists(deny=f"/{pattern}/")
    text = "PRJ-" + "1a" * 30_000

    assert grows_in_proportion(lambda each: redactor.begin().text(each), text)


@pytest.mark.parametrize("line", ["/[/", "FRUIT: apple", "/(?P<a/"])
def test_a_line_that_makes_no_sense_is_refused(with_lists, line):
    """In one line that has its number and does not quote it."""
    with pytest.raises(ConfigurationError) as raised:
        with_lists(deny=f"tea\n{line}")

    message = str(raised.value)
    assert "line 2: " in message
    assert line not in message
    assert "\n" not in message


def test_a_file_that_is_not_there_is_refused(tmp_path):
    """Before anything is stored, and without its path, which may tell something."""
    with pytest.raises(ConfigurationError, match="MNEMOSCOPE_PII_ALLOW: the file cannot be read"):
        read_term_lists(tmp_path / "none", None)


def test_settings_name_the_files(tmp_path, monkeypatch):
    """For what a scope stores."""
    (tmp_path / "deny").write_text("Bluebird")
    monkeypatch.setenv("MNEMOSCOPE_PII_DENY", str(tmp_path / "deny"))
    scope = configure(sinks="none", pii_model="none", audit_pseudonym_key="ab" * 16)

    bare = InMemoryStore()
    with context(customer="c-42"):
        scope.store(bare).put(("c-42",), "note", {"text": "on Bluebird"})
    scope.close()

    assert bare.get(("c-42",), "note").value == {"text": "on <SECRET>"}


def test_nothing_of_a_list_shows(tmp_path):
    """Not in what it says of itself."""
    (tmp_path / "deny").write_text("Bluebird")
    lists = read_term_lists(None, tmp_path / "deny")

    assert "luebird" not in repr(lists)
