"""Names that need a second evidence: a product, a work and a town have the names of people."""

import pytest

NAMES = ("Hugo", "Rebecca", "Adelaide", "Doris", "Gerrit", "Emma")

THINGS = (
    "Starting {} tonight, popcorn is ready.",
    "Currently reading: {}. No spoilers!",
    "Try {} or something else.",
    "Supported: {}, Windows Server, Alpine.",
    "Dinner was nice. Could be {}?",
    '{{"flags": ["Beta", "{}"]}}',
    "Tools by Stihl and coffee by {}, as ever.",
    "She prefers {} or something like it.",
)
PEOPLE = (
    "Thanks for the ride, {}!",
    "{}, the keys are on the table.",
    "A mail from {} about it.",
    "Lunch with {} on Friday.",
    "{} is running late.",
    "Wow, {}! What a view.",
    "Yeah, {}, it went well.",
    "{} wants a second vote.",
    "Please call {} if you see her.",
    "The kids stayed at {}'s place.",
    "{}",
)


ASKED = (
    *("What", "When", "Where", "Why", "How", "Which town", "How long", "What kind of tea"),
    *("And what", "ok so why", "Tell me where", "I forgot when", "Do you know how"),
)
"""How a question begins."""

AUXILIARIES = ("did", "does", "has", "is", "was", "will", "would", "can", "didn't")
QUESTIONS = (
    "Who is {}?",
    "Does {} like tea?",
    "Is {} allergic to nuts?",
    "What are {}'s hobbies?",
    "Did I tell you? Was {} late?",
)
PEOPLES_NAMES = ("Sarah", "Caroline", "Melanie", "Oscar", "Priya", "Zuzanna")
LISTS = (
    "They had 6: {}, {}, {}, Chloe, Andrea and Brandi.",
    "Guests: {}, {}, {}",
    "{}\n{}\n{}\n",
    "| {} | {} | {} |",
    "- {}\n- {}\n- {}",
    "the answer was {}, {} and {}",
)
THINGS_ASKED = (
    "Does Ruby support threads?",
    "How does Hugo build pages?",
    "What does Julia 1.8 change?",
    "Is Paris nice in May?",
    "Is Charlotte warm in winter?",
    "What would Victoria cost?",
    "Cities: Paris, Florence, Sydney and Milan.",
    "Months: April, May and June.",
    "We use Ruby, Julia, Python and Hugo.",
    "Fonts: Helvetica, Georgia, Lato and Verdana.",
)


PARTS = (
    "Plugins: Zorbal, Frimp, {}, Quontle and Drax.",
    "A contract with Vondrel & {}.",
    "[{}] started, {}::run()",
)

SAID = ("Mom says Ibuprofen is fine.", "I miss Bridgerton so much.", "Dad said Tabasco, not salt.")


def _redacted(redactor, text):
    return redactor.begin().text(text)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("frame", THINGS)
def test_a_name_that_nothing_says_is_a_persons_is_kept(redactor, frame, name):
    """A word that a list of names has stays, where a thing may stand and no person is told of."""
    text = frame.format(name)

    assert _redacted(redactor, text) == text


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("frame", PEOPLE)
def test_a_name_is_replaced_where_its_sentence_says_so(redactor, frame, name):
    """Who is spoken to, does something, or stands behind a word for company."""
    assert name not in _redacted(redactor, frame.format(name))


@pytest.mark.parametrize("frame", THINGS[:3])
@pytest.mark.parametrize("other", ["Mail ada@quimbymail.example.", "Dear Rosalind Quimby,"])
def test_a_name_is_replaced_beside_other_personal_data(redactor, frame, other):
    """A text that is about a person has more of that person's names."""
    assert "Hugo" not in _redacted(redactor, f"{other}\n{frame.format('Hugo')}")


@pytest.mark.parametrize("text", SAID)
def test_what_somebody_says_or_misses_is_no_name(redactor, text):
    """Behind *says* stands who speaks only where a quote goes before it; to miss is no title."""
    assert _redacted(redactor, text) == text


def test_who_speaks_stands_behind_a_quote(redactor):
    """A rare name is found there."""
    assert "Xiloptera" not in _redacted(redactor, "“No idea,” said Xiloptera.")


def test_a_name_is_as_weak_as_the_one_it_repeats(redactor):
    """A word twice in a text is no second evidence; once with a person's verb is, for both."""
    twice = "Try Hugo or something else. Starting Hugo tonight."

    assert _redacted(redactor, twice) == twice
    assert "Hugo" not in _redacted(redactor, f"{twice} Hugo wants a coffee.")


@pytest.mark.parametrize("name", NAMES)
def test_a_word_that_is_a_thing_once_is_no_name_elsewhere(redactor, name):
    """A text means the same by a word each time: what has a version is not who was fast."""
    text = f"We moved to {name} 1.8 in March. {name} was fast enough for that."

    assert _redacted(redactor, text) == text


@pytest.mark.parametrize("name", NAMES[:3])
@pytest.mark.parametrize("frame", PARTS)
def test_a_part_of_a_list_a_firm_or_code_is_kept_beside_personal_data(redactor, frame, name):
    """Where the text is about a person, too."""
    text = frame.replace("{}", name)

    assert _redacted(redactor, f"Mail ada@quimbymail.example.\n{text}").endswith(text)


@pytest.mark.parametrize("auxiliary", AUXILIARIES)
@pytest.mark.parametrize("begins", ASKED)
def test_who_a_question_is_about_is_replaced(redactor, begins, auxiliary):
    """A recall is a question: its names must meet those that stand in memory."""
    for name in PEOPLES_NAMES:
        assert name not in _redacted(redactor, f"{begins} {auxiliary} {name} say so?")


@pytest.mark.parametrize("question", QUESTIONS)
def test_who_is_asked_about_in_few_words_is_replaced(redactor, question):
    """With nothing else in the sentence that says so."""
    for name in PEOPLES_NAMES:
        assert name not in _redacted(redactor, question.format(name))


@pytest.mark.parametrize("frame", LISTS)
def test_names_side_by_side_are_people(redactor, frame):
    """What one name alone does not say, three say together."""
    redacted = _redacted(redactor, frame.format("Rogelio", "Sharon", "Jessica"))

    assert redacted.count("<PERSON>") == frame.count("{}") + 3 * ("Brandi" in frame)


@pytest.mark.parametrize("text", THINGS_ASKED)
def test_a_thing_that_is_asked_about_or_listed_stays(redactor, text):
    """Tools, towns and months have names of people."""
    assert _redacted(redactor, text) == text


def test_a_list_of_names_and_a_model_are_two_evidences(with_model):
    """Neither alone says that a person is meant, where the sentence does not."""
    text = "Everyone at the shelter adores Caroline because of it."

    assert "Caroline" not in _redacted(with_model, text)
