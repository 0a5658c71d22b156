"""``mnemoscope redact``: text in, redacted text out, of any length, and never the raw one."""

from __future__ import annotations

import io
import json
import sys

import pytest

from mnemoscope.adapters.cli import text_pieces
from mnemoscope.adapters.cli.root import run
from mnemoscope.memory import RedactionError
from mnemoscope.memory.privacy.engine.redactor import Redactor

KEY = "00112233445566778899aabbccddeeff"


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """Begin each test with patterns only and a data folder of its own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("MNEMOSCOPE_PII_MODEL", "none")
    monkeypatch.delenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", raising=False)


@pytest.fixture
def redact(capfdbinary, monkeypatch):
    """Return how to run it on bytes: the exit code, what it printed, and what it said beside."""

    def call(text, *arguments):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        code = run(["redact", *arguments])
        printed = capfdbinary.readouterr()
        return code, printed.out, printed.err.decode()

    return call


def test_standard_input_comes_out_redacted(redact):
    """What is not personal comes out byte by byte, ends of lines included."""
    code, out, err = redact(b"mail ada@example.com\r\n\r\n  now \xc3\xa4\n\n")

    assert (code, err) == (0, "")
    assert out == b"mail <EMAIL_ADDRESS>\r\n\r\n  now \xc3\xa4\n\n"


@pytest.mark.parametrize("text", [b"", b"\n", b"tea", b"\r\n\n\n"])
def test_nothing_to_redact_is_nothing_to_change(redact, text):
    """Empty input included."""
    assert redact(text) == (0, text, "")


def test_a_file_is_read(redact, tmp_path):
    """In place of standard input; ``-`` is that again."""
    file = tmp_path / "notes.txt"
    file.write_text("mail ada@example.com")

    assert redact(b"", str(file))[1] == b"mail <EMAIL_ADDRESS>"
    assert redact(b"tea", "-")[1] == b"tea"


@pytest.mark.parametrize(
    ("operator", "stands"), [("tag", b"<EMAIL_ADDRESS>"), ("mask", b"********")]
)
def test_the_operator_says_what_stands_there(redact, operator, stands):
    """As the policy's would."""
    assert redact(b"mail ada@example.com", "--operator", operator)[1] == b"mail " + stands


def test_pseudonyms_are_those_of_the_stores(redact, monkeypatch):
    """The same key and tenant make the same; without a key it is said that they do not."""
    arguments = ("--operator", "pseudonym", "--tenant", "acme")
    unlike = [redact(b"ada@example.com", *arguments) for _ in range(2)]
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", KEY)
    like = [redact(b"ada@example.com", *arguments) for _ in range(2)]
    elsewhere = redact(b"ada@example.com", *arguments[:3], "globex")

    assert unlike[0][1] != unlike[1][1]
    assert "differ in every run" in unlike[0][2]
    assert like[0] == like[1]
    assert like[0][2] == ""
    assert elsewhere[1] != like[0][1]


def test_no_key_is_made(redact, tmp_path):
    """Trying the policy is no first use."""
    redact(b"ada@example.com", "--operator", "pseudonym")

    assert not (tmp_path / "data").exists()


def test_it_explains_where_and_why_and_not_what(redact):
    """By line and column, from 1, beside the text; the text is not repeated."""
    _code, out, err = redact(b"tea\n\nmail ada@example.com now", "--explain")
    _heading, line = err.splitlines()

    assert out == b"tea\n\nmail <EMAIL_ADDRESS> now"
    assert line.split()[:3] == ["3:6-3:20", "EMAIL_ADDRESS", "0.90"]
    assert "ada@" not in err


def test_a_secret_is_explained_by_its_rule(redact):
    """The vendor, and what showed it, within 80 columns."""
    key = "sk_" + "live_" + "4eC39HqLyjWDarjtT1"
    _code, _out, err = redact(f"mail ada@example.com {key}".encode(), "--explain")

    assert "secret.stripe: a shape of its keys" in err
    assert max(map(len, err.splitlines())) <= 80
    assert key not in err


def test_what_the_lists_did_is_explained(redact, monkeypatch, tmp_path):
    """What is always replaced, and what an allowed term kept."""
    (tmp_path / "allow").write_text("help@acme.example")
    (tmp_path / "deny").write_text("Bluebird")
    monkeypatch.setenv("MNEMOSCOPE_PII_ALLOW", str(tmp_path / "allow"))
    monkeypatch.setenv("MNEMOSCOPE_PII_DENY", str(tmp_path / "deny"))
    _code, out, err = redact(b"Bluebird: help@acme.example", "--explain")

    assert out == b"<SECRET>: help@acme.example"
    _heading, denied, allowed, *_rest = err.splitlines()
    assert "always replaced" in denied
    assert "kept, as allowed" in allowed


def test_it_explains_in_json(redact):
    """A line for each find, on standard error, and the text is as ever."""
    _code, out, err = redact(b"tea\n\nmail ada@example.com now", "--json")

    assert out == b"tea\n\nmail <EMAIL_ADDRESS> now"
    assert json.loads(err) == {
        "where": "3:6-3:20",
        "entity": "EMAIL_ADDRESS",
        "score": 0.9,
        "reason": "local part, @ and host",
        "replaced": True,
    }


def test_a_model_that_is_not_there_is_said(redact):
    """Names are found by rules then, and fewer of them."""
    code, _out, err = redact(b"Ada met Charles at the engine.", "--pii-model", "en_no_such_model")

    assert code == 0
    assert "no language model" in err


@pytest.mark.parametrize("text", [b"tea\n\xff", b"\xff\xfet\x00e\x00a\x00", b"tea\n\xc3"])
def test_what_is_no_text_ends_in_one_line(redact, text):
    """And quotes nothing of it."""
    code, _out, err = redact(text)

    assert code == 2
    assert len(err.splitlines()) == 1
    assert "not UTF-8" in err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--operator", "keep"], 4), (["/no/such/file"], 2), (["/"], 2), (["a", "b"], 4)],
)
def test_a_mistake_ends_in_one_line(redact, arguments, code):
    """With the documented code, and nothing on standard output."""
    ended, out, err = redact(b"ada@example.com", *arguments)

    assert (ended, out) == (code, b"")
    assert len(err.splitlines()) == 1


def test_what_cannot_be_redacted_is_not_printed(redact, monkeypatch):
    """It ends in one line, with nothing of the text."""

    def broken(*_args, **_kwargs):
        raise RedactionError("redaction failed: ValueError")

    monkeypatch.setattr(Redactor, "redact", broken)
    code, out, err = redact(b"mail ada@example.com")

    assert (code, out) == (2, b"")
    assert err == "mnemoscope: redaction failed: ValueError\n"


class TestPieces:
    def cut(self, text):
        return list(text_pieces.pieces(io.BytesIO(text.encode())))

    def test_a_short_text_is_one(self):
        """What belongs together is seen together."""
        assert self.cut("a\n\nb\n") == [text_pieces.Piece(1, "a\n\nb", "\n")]

    def test_a_long_text_is_cut_between_paragraphs(self):
        """Where there are any, and not too long."""
        paragraph = "tea and toast\n" * 300 + "\n"
        pieces = self.cut(paragraph * 10)

        assert len(pieces) > 1
        assert all(len(each.text) <= text_pieces.PIECE_CHARS for each in pieces)
        assert all(each.end == "\n\n" for each in pieces)

    def test_nothing_is_lost_between_pieces(self):
        """Put together again they are the text, and their line numbers are the text's."""
        text = "".join(f"line {n}\n{'' if n % 500 else chr(10)}" for n in range(6_000))
        pieces = self.cut(text)

        assert "".join(each.text + each.end for each in pieces) == text
        assert [text.split("\n")[each.line - 1] for each in pieces] == [
            each.text.split("\n")[0] for each in pieces
        ]

    def test_lines_without_paragraphs_are_cut_between_lines(self):
        """A log has no empty lines."""
        assert {each.end for each in self.cut("a log line\n" * 5_000)} == {"\n"}

    def test_an_endless_line_is_read_in_part(self, redact):
        """What is over the limit of one text is replaced, as in a store; the next line is whole."""
        line = b"tea " * 100_000 + b"ada@example.com"
        code, out, _err = redact(line + b"\nmail bob@example.com\n")

        assert code == 0
        assert b"@" not in out
        assert out.endswith(b"<OVERSIZE>\nmail <EMAIL_ADDRESS>\n")
        assert len(out) < text_pieces.LINE_CHARS


def test_the_configured_operators_are_used(redact, monkeypatch):
    """Entity by entity, quasi-identifiers that are switched on included, as before a store."""
    monkeypatch.setenv("MNEMOSCOPE_PII_OPERATORS", "EMAIL_ADDRESS=mask,DATE_TIME=tag,PERSON=keep")
    text = b"Dear Ada, ada@example.com from 203.0.113.7 on 2026-03-01"

    assert redact(text)[1] == b"Dear Ada, ******** from <IP_ADDRESS> on <DATE_TIME>"


def test_an_operator_overrides_the_configured_ones(redact, monkeypatch):
    """All but what is to be kept."""
    monkeypatch.setenv("MNEMOSCOPE_PII_OPERATORS", "EMAIL_ADDRESS=mask,DATE_TIME=mask,PERSON=keep")
    text = b"Dear Ada, ada@example.com from 203.0.113.7 on 2026-03-01"
    expected = b"Dear Ada, <EMAIL_ADDRESS> from <IP_ADDRESS> on <DATE_TIME>"

    assert redact(text, "--operator", "tag")[1] == expected


def test_configured_pseudonyms_are_those_of_the_stores(redact, monkeypatch):
    """They say likewise where there is no key."""
    monkeypatch.setenv("MNEMOSCOPE_PII_OPERATORS", "*=pseudonym")
    unlike = redact(b"ada@example.com", "--tenant", "acme")
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", KEY)
    like = redact(b"ada@example.com", "--tenant", "acme")
    named = redact(b"ada@example.com", "--tenant", "acme", "--operator", "pseudonym")

    assert "differ in every run" in unlike[2]
    assert like == named


def test_an_operator_that_is_configured_wrongly_is_said(redact, monkeypatch):
    """In one line."""
    monkeypatch.setenv("MNEMOSCOPE_PII_OPERATORS", "EMAIL_ADDRESS=shred")
    code, out, err = redact(b"ada@example.com")

    assert code != 0
    assert out == b""
    assert len(err.splitlines()) == 1
    assert "EMAIL_ADDRESS" in err
