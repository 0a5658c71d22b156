"""
The work for a text grows with its length, whatever personal data it repeats, and no clock ends it.

Texts are made of everything that a detector finds, in each form in which such things follow one
another. Work is counted in calls and rounds of loops, so that no machine's speed decides.
"""

import itertools
import os
import random
import sys

import pytest

from mnemoscope.memory.privacy.detectors.term_lists import read_term_lists
from tests.kit.call_costs import work_of

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="before Python 3.12 nothing counts calls and loops"
)

_SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
_RANDOM = random.Random(5)  # noqa: S311 - the same in every run

FOUND = {
    "given names": ["Anna", "Jan", "Maria", "Tom", "Peter", "Julia", "Karen", "Oscar", "Linda"],
    "full names": ["Anna Smith", "Jan Kowalski", "Maria Rossi", "Tom Baker", "Peter Müller"],
    "names in capitals": ["ANNA", "JAN", "MARIA", "TOM", "PETER"],
    "names written small": ["anna", "jan", "maria", "tom", "peter"],
    "unknown words": ["".join(_RANDOM.sample(_SYLLABLES, 3)).capitalize() for _ in range(5_000)],
    "placeholders": ["<PERSON>", "<EMAIL_ADDRESS>", "Anna"],
    "chinese names": ["王小明", "李雷", "张伟"],
    "japanese names": ["田中さん", "佐藤さん"],
    "russian names": ["Анна Иванова", "Пётр Смирнов"],
    "arabic names": ["محمد", "فاطمة"],
    "hindi names": ["अंजलि शर्मा", "राजेश"],
    "e-mail addresses": ["anna@example.com", "jan@example.org", "Maria R. <m.r@example.net>"],
    "user names": ["@grace_h", "username: grace_h", "user grace_h"],
    "phone numbers": ["+49 171 3456789", "(212) 555-0187", "0171 3456789"],
    "numbers of cards": ["4556 7375 8689 9855", "DE89 3704 0044 0532 0130 00"],
    "numbers of people": ["536-90-4399", "219-09-9999"],
    "plain numbers": ["12", "450,99", "1.63.1"],
    "network addresses": ["192.168.4.17", "2001:db8::8a2e:370:7334"],
    "streets": ["4711 Larkspur Avenue", "12 High Street, London", "Hauptstraße 5, 10115 Berlin"],
    "secrets": ["password: hunter2x9", "api_key=sk-proj-abcdef1234567890ABCDEF"],
    "logins": ["https://ada:pw1234@example.com/x", "postgres://u:p9ss@db/x"],
    "encoded": ["YWRhQGV4YW1wbGUuY29tIGFuZCBib2JAZXhhbXBsZS5jb20gYW5k"],
}
SHAPES = {
    "one a line": "{}\n",
    "a list": "{}, ",
    "a chat": "{}: ok, see you\n",
    "rows": "{},ok,12\n",
    "objects": '{{"name": "{}"}}, ',
    "prose": "I met {} and we talked about tea. ",
    "questions": "What did {} say? ",
    "code": "greet('{}')  # and the next one\n",
}
GROWTHS = (
    ((1_000, 4_000), (16_000, 64_000), (64_000, 256_000))
    if os.environ.get("ALL_SHAPES")
    else ((500, 2_000), (5_000, 12_000))
)
"""
Lengths that are compared, on one side of 4,096 characters: longer texts are searched in pieces, and
names of one piece are looked for in the others, which costs a share more once.
"""

PAIRS = (
    list(itertools.product(FOUND, SHAPES))
    if os.environ.get("ALL_SHAPES")
    else [*zip(FOUND, itertools.cycle(SHAPES)), *(("given names", shape) for shape in SHAPES)]
)
"""Each detector and each shape once. `make redaction-growth` tries all of them, on longer texts."""

MOST_GROWTH = 1.3
"""Growth of the work in proportion to the growth of the text. The square of four would be 4."""

CHEAP = 20
"""Calls a character: what costs less than that at a length need not be in proportion to it."""


def made(found: str, shape: str, chars: int) -> str:
    """Return *chars* characters of *found* in *shape*."""
    parts: list[str] = []
    left = chars
    for each in itertools.cycle(FOUND[found]):
        parts.append(SHAPES[shape].format(each))
        left -= len(parts[-1])
        if left <= 0:
            return "".join(parts)[:chars]
    raise AssertionError("a cycle has no end")


def work_for(redactor, text):
    """Return the work for a text that is not cached, and what became of it."""
    answers: list[str] = []
    work = work_of(lambda: answers.append(redactor.begin(tenant="acme").text(text)))
    return work, answers[0]


def cost_at(redactor, found, shape, chars):
    """Return the work for *chars* characters, nothing of which is left out."""
    cost, redacted = work_for(redactor, made(found, shape, chars))
    assert "<OVERSIZE>" not in redacted
    return max(cost, CHEAP * chars)


@pytest.mark.long_but(*("-".join(each) for each in [*dict.fromkeys(PAIRS)][::6]))
@pytest.mark.parametrize(("found", "shape"), dict.fromkeys(PAIRS), ids=lambda each: each)
def test_work_grows_with_the_length_of_a_text(redactor, found, shape):
    """Work for four times the text is at most 1.3 times as much as four times the work."""
    work_for(redactor, made(found, shape, 200))
    for shorter, longer in GROWTHS:
        less, more = (cost_at(redactor, found, shape, chars) for chars in (shorter, longer))
        assert more / less <= MOST_GROWTH * longer / shorter, (shorter, less, longer, more)


def test_what_is_allowed_or_replaced_already_costs_no_square(make, tmp_path):
    """Each find is compared with the terms and placeholders near it, not with all of them."""
    (tmp_path / "allowed").write_text("tea\nMaria\n")
    redactor = make(lists=read_term_lists(tmp_path / "allowed", None))
    text = "<PERSON> had tea with anna@example.com. "
    work_for(redactor, text)
    short, _ = work_for(redactor, text * 25)
    long, _ = work_for(redactor, text * 400)

    assert long < 28 * short
