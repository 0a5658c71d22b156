"""The first page: for a person, from any content, without a network."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from mnemoscope.audit.bundle.contract import RequestType
from mnemoscope.audit.bundle.latest import EVENTS_SHOWN, MEMORIES_SHOWN
from mnemoscope.audit.bundle.reading import marked, readable
from mnemoscope.telemetry.event.event import OperationClass, Redacted, Status

VOID = {"meta", "br", "input"}
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>&amp;'\""


class Reader(HTMLParser):
    """Reads a page as a browser does, and refuses what is not closed."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.addresses, self.handlers = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.open += [tag] if tag not in VOID else []
        self.addresses += [value for name, value in attributes if name in {"src", "href"}]
        self.handlers += [name for name, _value in attributes if name.startswith("on")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def page(log, read, things, event_factory):
    """Return a page of a few events of each kind."""
    store, thing = things
    log.append(
        [
            event_factory(
                op_class=each, content=Redacted({"text": EVIL}), agent=EVIL, purpose="why"
            )
            for each in OperationClass
        ]
    )
    return read(store("mem0", thing("m-1", {"data": EVIL, "age": 41}))).page


def test_it_is_one_whole_page(page):
    """Every tag closed; nothing is fetched, from anywhere."""
    reader = Reader(page)

    assert reader.open == []
    assert not [each for each in reader.addresses if not each.startswith("#")]
    assert "http" not in re.sub(r"http-equiv", "", page)


def test_what_was_remembered_cannot_run(page):
    """It is shown as the text that it is, and the policy names the one script there is."""
    reader = Reader(page)

    assert reader.tags.count("script") == 1
    assert "img" not in reader.tags
    assert reader.handlers == []
    assert "&lt;script&gt;alert(1)" in page
    assert re.search(r"default-src 'none'; style-src 'sha256-\S+'; script-src 'sha256-\S+'", page)


def test_it_shows_everything_without_the_script(page):
    """The filter alone is hidden until the script shows it."""
    without = re.sub(r"<script>.*</script>", "", page, flags=re.DOTALL)

    assert "class=filter id=filter hidden" in without
    assert without.count("<li data-kind=") == len(OperationClass) - 1  # a model call without usage
    assert " hidden>" not in without.replace("id=filter hidden>", "")


def test_each_event_is_a_sentence(log, read, event_factory):
    """Who did what, how it ended, why and where."""
    log.append(
        [
            event_factory(agent="sales", purpose="reply", hits=3),
            event_factory(agent="sales", status=Status.EMPTY, hits=0),
            event_factory(status=Status.DEGRADED, neutral=True),
            event_factory(op_class=OperationClass.FORGET),
        ]
    )
    page = read().page

    assert "The agent “sales” looked up what is remembered about you, and found 3 entries." in page
    assert "and found nothing." in page
    assert "the store did not answer, and the agent went on without it." in page
    assert "The agent deleted something that was remembered." in page
    assert "why: reply · in: mem0" in page


def test_saved_states_in_a_row_are_one_entry(log, read, event_factory):
    """A conversation saves dozens of them, and nobody wants to read that."""
    saved = {"op_class": OperationClass.CHECKPOINT, "store": "langgraph.checkpoint", "run": "t"}
    log.append([event_factory(**saved) for _ in range(30)])
    page = read().page

    assert page.count("<li data-kind=") == 1
    assert "saved the state of the conversation 30 times" in page


def test_a_long_history_is_bounded_and_says_so(log, read, event_factory):
    """The newest part, and the file that has all."""
    log.append([event_factory(started_ns=n * 10**9) for n in range(EVENTS_SHOWN + 20)])
    page = read().page

    assert page.count("<li data-kind=") == EVENTS_SHOWN
    assert f"the newest {EVENTS_SHOWN} of {EVENTS_SHOWN + 20}" in page
    assert "events.jsonl" in page
    assert "accesses.csv" in page


def test_many_memories_are_bounded_and_say_so(log, read, things, event_factory):
    """As many as a person reads, and the file that has all."""
    store, thing = things
    log.append([event_factory()])
    page = read(store("mem0", *(thing(f"m-{n}") for n in range(MEMORIES_SHOWN + 5)))).page

    assert page.count("<td class=text>") == MEMORIES_SHOWN
    assert "5 more are in <code>memories.jsonl</code>" in page
    assert f"<b>{MEMORIES_SHOWN + 5}</b>remembered now" in page


def test_what_was_seen_is_told_in_words(log, read, things, event_factory):
    """An id says nothing to a customer: the memory that it stands for does."""
    store, thing = things
    log.append([event_factory(memory_ids=("m-1", "gone"), scores=(0.9, 0.1))])
    page = read(store("mem0", thing("m-1", "likes oolong"))).page

    assert "<li value=1>likes oolong</li>" in page
    assert "<li value=2><code>gone</code></li>" in page


def test_incomplete_is_the_first_thing_that_is_said(log, read, things, event_factory):
    """Which store, and that it is not the whole answer."""
    store, _thing = things
    log.append([event_factory()])
    page = read(store("mem0", fails=TimeoutError("secret"))).page

    assert page.index("This answer is not complete.") < page.index("remembered now")
    assert "it could not be read (TimeoutError)" in page
    assert "secret" not in page


def test_that_nothing_is_left_is_told(log, read, event_factory):
    """No data, in so many words, of somebody who is known."""
    log.append([event_factory()])
    with log.tables.writing() as (connection, _head):  # as retention does
        connection.execute("DELETE FROM audit_detail")

    assert "No data is held about you." in read().page


def test_the_operators_notice_is_on_it(log, read, event_factory):
    """Who is responsible, and what for."""
    log.append([event_factory()])
    notice = {
        "controller": {"name": "North & Co"},
        "art15": {"purposes": ["support", "sales"], "retention": "400 days"},
    }
    page = read(notice=notice).page

    assert "North &amp; Co" in page
    assert "support, sales" in page


def test_portability_tells_no_consultations(log, read, event_factory):
    """They are not what the person gave."""
    log.append([event_factory(op_class=OperationClass.REMEMBER), event_factory()])
    page = read(kind=RequestType.PORTABILITY).page

    assert "What you gave our AI agents to remember" in page
    assert "id=accesses" not in page


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (None, ""),
        ("likes tea", "likes tea"),
        ({"query": "tea?", "top_k": 3, "filters": {}}, "tea?"),
        (
            {"messages": [{"role": "user", "content": "a"}, {"content": "b"}], "infer": False},
            "a\nb",
        ),
        ({"key": "k", "value": {"text": "note"}}, "note"),
        ({"age": 41, "vegan": True}, "age: 41\nvegan: true"),
        ([1, "two", {"x": ["y", "z"]}], "1\ntwo\ny\nz"),
    ],
)
def test_content_is_shown_as_what_it_says(content, shown):
    """Its texts, without the machinery around them."""
    assert readable(content) == shown


def test_what_stands_for_personal_data_is_set_apart():
    """Placeholders become words; all else is escaped."""
    shown = marked("<PERSON_3f9a> of <EMAIL_ADDRESS> & <b>")

    assert shown == (
        "<span class=mask>person 3f9a</span> of <span class=mask>email address</span> &amp; "
        "&lt;b&gt;"
    )


def test_a_store_is_shown_by_the_title_that_it_gives_itself(log, read, things, event_factory):
    """The page has no table of stores; one that was not asked has its name alone."""
    store, thing = things
    notes = store("crm", thing("m-1"))
    notes.title = "Your <notes>"
    log.append([event_factory(store="wiki", op_class=OperationClass.REMEMBER)])

    page = read(notes).page
    assert "<h3>Your &lt;notes&gt; (<code>crm</code>): 1 entry</h3>" in page
    assert "<h3><code>wiki</code>: " in page
