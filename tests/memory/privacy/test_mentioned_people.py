"""One person, one pseudonym: whatever a text calls them."""

import re

import pytest

PSEUDONYM = re.compile(r"<PERSON_\w+>")


@pytest.fixture
def told(make):
    """Returns a function of a text and a customer that returns the pseudonyms in it."""
    redactor = make(operators={"PERSON": "pseudonym"})

    def told(text, customer="c-1", tenant="acme"):
        known = [customer] if customer else []
        return PSEUDONYM.findall(redactor.begin(tenant=tenant, known=known).text(text))

    return told


@pytest.mark.parametrize(
    "mention",
    [
        "MELANIE is well",
        "I was at Melanie's house",
        "Ask Ms. Melanie, please",
        "Hey Mel!",
        "Hi Melanie. Thanks for that",
        "My name is Melani\u00e9",
    ],
)
@pytest.mark.parametrize("customer", ["c-1", None])
def test_all_spellings_of_a_name_are_one(told, mention, customer):
    """Case, possessives, titles, short forms, accents; with a customer and without."""
    assert told(mention, customer) == told("I met Melanie", customer) != []


@pytest.mark.parametrize(
    "mention",
    [
        "Caroline is well",
        "I was at Caroline's house",
        "Ask Ms Smith about it",
        "CAROLINE SMITH called",
        "Dear Caro",
    ],
)
def test_a_part_of_a_full_name_that_was_seen_is_that_person(told, mention):
    """Given name or family name, with a title or without, and short."""
    whole = told("I met Caroline Smith yesterday")

    assert told(mention) == whole != []


def test_full_names_that_share_a_part_are_never_one(told):
    """Both were seen: the part that they share is neither of them."""
    first = told("I met Caroline Smith yesterday")
    part = told("Caroline is well")
    second = told("I met Caroline Jones yesterday")
    afterwards = told("Caroline is in Rome")

    assert part == first
    assert second != first
    assert afterwards not in (first, second)
    assert told("CAROLINE SMITH called") == first


def test_a_full_name_does_not_depend_on_what_was_seen(told, make):
    """In every process, and whatever came before."""
    told("Caroline is well")
    told("I met Caroline Jones yesterday")
    anew = make(operators={"PERSON": "pseudonym"}).begin(tenant="acme", known=["c-2"])

    assert told("I met Caroline Smith") == PSEUDONYM.findall(anew.text("I met Caroline Smith"))


def test_a_name_keeps_what_it_stood_for_first(told):
    """A name that was met alone is not somebody else's from one day to the next."""
    before = told("Caroline is well")
    told("I met Caroline Smith yesterday")

    assert told("Caroline is in Rome") == before


@pytest.mark.parametrize(
    ("customer", "tenant"), [("c-2", "acme"), ("c-1", "other"), (None, "acme")]
)
def test_nobody_is_known_from_another_customers_texts(told, customer, tenant):
    """What was seen is remembered for one customer of one tenant."""
    told("I met Caroline Smith yesterday")
    part = told("Caroline is well", customer, tenant)

    assert part != told("I met Caroline Smith", customer, tenant)


def test_a_short_form_of_several_names_is_the_one_that_was_seen(told):
    """Sam is Samantha where she was mentioned, and nobody's short form where nobody was."""
    nobody = told("Hi Sam!", "c-2")
    told("I met Samantha yesterday")

    assert told("Hey Sam, are you there?") == told("Samantha is well")
    assert nobody != told("Samantha is well", "c-2")


def test_what_is_remembered_of_a_customer_is_bounded(told):
    """Names without end are forgotten, not kept."""
    whole = told("I met Caroline Smith yesterday")
    for number in range(300):
        family = "".join("abcdefghij"[int(digit)] for digit in str(number))
        told(f"I met Caroline Num{family} yesterday")

    assert told("I met Caroline Smith again") == whole
