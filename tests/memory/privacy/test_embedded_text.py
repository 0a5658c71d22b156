"""Texts as they are densely encoded: what stands for personal data is left out."""

import random

import pytest
from presidio_analyzer import PatternRecognizer

from tests.kit.growth import grows_in_proportion

P, Q = "<PERSON_4kq7wz2mxa>", "<PERSON_3f9a0c11d2e4b586>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no stand-in, a < b > c", "no stand-in, a < b > c"),
        (f"I met {P} at the fair", "I met at the fair"),
        (f"{P} likes tea", "likes tea"),
        (f"{P}: I like tea", "I like tea"),
        (f"Hi {P}, what does {Q} like?", "Hi, what does like?"),
        (f"Thanks, {P}!", "Thanks!"),
        (f"{P}'s cat and {Q}\u2019s dog", "cat and dog"),
        (f"the owner ({P}) is in", "the owner is in"),
        (f'she said "{P}" and left', "she said and left"),
        ("mail <EMAIL_ADDRESS> or ********.", "mail or."),
        (f"one\n{P}: two\n{Q} three", "one\ntwo\nthree"),
        ('{"fact": "met <PERSON>"}', '{"fact": "met"}'),
        ("tea <OVERSIZE>", "tea"),
        ("<DIV>tea</DIV> <SOMETHING_4kq7wz2mxa>", "<DIV>tea</DIV> <SOMETHING_4kq7wz2mxa>"),
    ],
)
def test_what_is_left(redactor, text, expected):
    """The words around a stand-in, with their spaces and punctuation mended."""
    assert redactor.text_to_embed(text) == expected


@pytest.mark.parametrize("text", [P, "<PERSON>", f"{P}, {Q}!", "********", "", " ", "?"])
def test_what_is_nothing_but_stand_ins_stays(redactor, text):
    """An embedder is given no empty text where there was one."""
    assert redactor.text_to_embed(text) == text


def test_entities_of_the_users_recognizers_are_left_out(make):
    """What stands for them is known by their operator."""
    badges = PatternRecognizer("BADGE", deny_list=["B-17"])

    redactor = make(recognizers=[badges])

    assert redactor.text_to_embed("the badge <BADGE> opens the door") == "the badge opens the door"


def test_it_is_done_once(redactor):
    """Whatever is left out, doing it again changes nothing: two layers may do it."""
    pieces = [P, Q, "<PERSON>", "********", "tea", ",", ".", " ", "'s", "(", ")", "\n", '"', "and"]
    chosen = random.Random(7)  # noqa: S311 - no secret
    for _each in range(3_000):
        text = "".join(chosen.choices(pieces, k=chosen.randrange(1, 12)))
        once = redactor.text_to_embed(text)

        assert redactor.text_to_embed(once) == once
        assert bool(once) == bool(text)


@pytest.mark.parametrize(
    "hostile", [f"{P} " * 5_000, "<" * 100_000, f"{P}" + "," * 100_000 + "a", " " * 100_000 + P]
)
def test_it_takes_time_linear_in_the_text(redactor, hostile):
    """Ten times as much of anything takes about ten times as long."""
    assert grows_in_proportion(redactor.text_to_embed, hostile)
