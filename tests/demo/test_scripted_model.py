"""The scripted model: it streams, counts, and says that it is a script."""

from __future__ import annotations

import json

import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from mnemoscope.demo.agent import OUTLINER, WRITER
from mnemoscope.demo.scripted_model import MODEL, PROVIDER, ScriptedModel
from mnemoscope.demo.surge import Tokens

LISTS = (
    "The customer writes: Is there any?\n\n- They said: I like tea.\n"
    "- They said: Call me on <PHONE>.\n- Tea is at four. In the hall.\n- Dinner is at six."
)


@pytest.fixture
def model():
    """Return the model."""
    return ScriptedModel()


def outlined(model, notes):
    return model.invoke([SystemMessage(OUTLINER), HumanMessage(notes)]).text


def answered(model, points):
    return model.invoke([SystemMessage(WRITER), HumanMessage(f"Hm?\n\n{points}")]).text


def test_an_outline_takes_what_was_said_and_the_first_document(model):
    """The next documents have less to do with the question."""
    assert outlined(model, LISTS) == (
        "- They said: I like tea.\n- They said: Call me on <PHONE>.\n- Tea is at four. In the hall."
    )


def test_where_nothing_is_asked_it_thanks(model):
    """A statement is no reason to quote the house rules."""
    notes = LISTS.replace("Is there any?", "I like tea.")

    assert outlined(model, notes) == "- Thank you, that is noted."


def test_an_answer_says_every_point(model):
    """Asked to answer, it says all points that the prompt lists."""
    assert answered(model, "- One.\n- Two.") == "One. Two."


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "I'm vegetarian, and I live for espresso.",
            "You are vegetarian, and you live for espresso.",
        ),
        ("It is our tenth anniversary.", "It is your tenth anniversary."),
        ("And write to <EMAIL_ADDRESS>.", "You asked us to write to <EMAIL_ADDRESS>."),
        ("Please use my other number.", "You asked us to use your other number."),
    ],
)
def test_what_a_customer_said_of_themselves_is_said_to_them(model, said, told):
    """In sentences, as somebody who remembers would say them, beside what else there is to say."""
    assert answered(model, f"- They said: {said}\n- Tea.") == f"I remember. {told} Tea."


def test_who_asks_for_all_of_it_is_told_all_of_it(model):
    """What is remembered alone, without a word of the house."""
    points = "- They said: I like tea.\n- They said: I like cake."

    assert answered(model, points) == (
        "Of course. This is what I have noted. You like tea. You like cake."
    )


def test_mem0_is_given_what_a_message_states(model):
    """Facts, word for word; neither questions nor small talk, nor what was said earlier."""
    earlier, now = "I like cake.", "user: Hello again, it is <PERSON>! I like tea. Is there any?"
    asked = f"## Last k Messages\n- {earlier}\n\n## New Messages\n{now}\n\n## Current Date"

    said = model.invoke([SystemMessage("Extract."), HumanMessage(asked)]).text

    assert json.loads(said) == {"memory": [{"text": "I like tea."}]}


def test_the_same_prompt_gives_the_same_answer(model):
    """There is no chance in it."""
    prompt = [SystemMessage(WRITER), HumanMessage(LISTS)]

    assert model.invoke(prompt).text == model.invoke(prompt).text


def test_it_streams_word_by_word(model):
    """The answer comes in chunks, the last of which has the usage and no text."""
    chunks = list(model.stream([SystemMessage(WRITER), HumanMessage(LISTS)]))

    assert len(chunks) > 5
    assert [bool(chunk.usage_metadata) for chunk in chunks[-2:]] == [False, True]
    assert chunks[-1].text == ""


def test_usage_is_counted_in_words(model):
    """The prompt's words are input, the system prompt's are cached, the answer's are output."""
    prompt = [SystemMessage("one two three"), HumanMessage("four five")]

    reply = model.invoke(prompt)

    usage = reply.usage_metadata
    assert usage["input_tokens"] == 5
    assert usage["input_token_details"] == {"cache_read": 3}
    assert usage["output_tokens"] == len(reply.text.split()) + 1
    assert usage["output_token_details"] == {"reasoning": 1}


def test_it_says_that_it_is_a_script(model):
    """Provider and model are named so that nobody takes it for a language model."""
    reply = model.invoke("Hello")

    assert reply.response_metadata["model_provider"] == PROVIDER == "scripted"
    assert reply.response_metadata["model_name"] == MODEL
    assert MODEL.startswith("scripted")


def test_a_surge_multiplies_every_kind_of_token():
    """And changes nothing of what is said."""
    prompt = [SystemMessage("one two three"), HumanMessage("four five")]
    usual = ScriptedModel().invoke(prompt)
    more = ScriptedModel(tokens=lambda counted: Tokens(*(3 * n for n in counted))).invoke(prompt)

    assert more.text == usual.text
    for kind in ("input_tokens", "output_tokens", "total_tokens"):
        assert more.usage_metadata[kind] == 3 * usual.usage_metadata[kind]
    assert more.usage_metadata["input_token_details"] == {"cache_read": 9}
    assert more.usage_metadata["output_token_details"] == {"reasoning": 3}
