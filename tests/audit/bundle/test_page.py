"""The first page: for a person, from any content, without a network."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from mnemoscope.audit.bundle.contract import RequestType
from mnemoscope.audit.bundle.conversations import CONVERSATIONS_SHOWN, ENTRIES_SHOWN
from mnemoscope.audit.bundle.latest import MEMORIES_SHOWN
from mnemoscope.audit.bundle.notice import Notice
from mnemoscope.audit.bundle.reading import dialogue, marked, readable
from mnemoscope.memory.api import OperationClass, Redacted, Status
from tests.kit.outlived_details import outlive

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
    quiet = 3  # a model call without usage, what was saved and what was picked up
    assert without.count("<li data-kind=") == len(OperationClass) - quiet
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

    assert "The agent “sales” looked up something to answer you, and found 3 entries." in page
    assert "and found nothing." in page
    assert "the store did not answer, and the agent went on without it." in page
    assert "An agent deleted something that was remembered." in page
    assert "Agents: “sales”. Purpose: reply." in page or "Agent: “sales”. Purpose: reply." in page


def test_saved_states_are_one_line_of_their_conversation(log, read, event_factory):
    """It saves hundreds of them, and nobody wants to read that; but one that failed is told."""
    saved = {"op_class": OperationClass.CHECKPOINT, "store": "langgraph.checkpoint", "run": "t"}
    for _ in range(153):
        log.append([event_factory(**saved), event_factory(**saved), event_factory(run="t")])
    log.append([event_factory(**saved, status=Status.ERROR)])
    page = read().page

    assert "the conversation was saved 307 times." in page
    assert page.count("<li data-kind=conversation") == 1
    assert "An agent saved the conversation: it failed." in page


def test_events_are_grouped_by_conversation(log, read, event_factory):
    """The newest conversation first, what happened in it in order; what has none, by day."""
    day_ns = 86_400 * 10**9
    for number, run in enumerate(["one", "two", "one", None, None, "two"]):
        log.append([event_factory(started_ns=number * day_ns, run=run, agent=f"a{number}")])
    page = read().page

    shown = re.findall(r"<details class=conversation.*?><h3>(.*?)</h3>", page)
    titles = [re.sub("<.*?>", "", each) for each in shown]
    assert titles == [
        "Conversation, 2 January 1970 to 6 January 1970",
        "Outside of conversations, 5 January 1970, 00:00",
        "Outside of conversations, 4 January 1970, 00:00",
        "Conversation, 1 January 1970 to 3 January 1970",
    ]
    first = page.index("<details class=conversation")
    assert page.index("“a1” looked", first) < page.index("“a5” looked", first)


def test_all_but_the_newest_conversations_are_folded(log, read, event_factory):
    """A page is not two hundred screens of a telephone; what is folded is there all the same."""
    log.append([event_factory(run=f"{n}", agent=f"a{n}") for n in range(5)])
    page = read().page

    assert page.count("<details class=conversation open>") == 3
    assert page.count("<details class=conversation>") == 2
    assert all(f"The agent “a{n}” looked up" in page for n in range(5))


def test_what_a_store_holds_is_folded_behind_the_first_few(log, read, things, event_factory):
    """Of all kinds; a conversation is folded in any case, under what is said of it."""
    log.append([event_factory()])
    store, thing = things
    facts = [thing(f"m{n}", f"fact {n:02d}") for n in range(20)]
    said = {"messages": [{"type": "human", "content": "is it ready?"}]}
    page = read(store("mem0", *facts), store("threads", thing("t", said, kind="thread"))).page

    opened, _, folded = page.partition("<summary>8 more entries</summary>")
    assert "fact 11" in opened
    assert "fact 12" not in opened
    assert "fact 19" in folded
    assert "<summary>A conversation, as it was last saved." in page
    assert "You: is it ready?" in page


def test_a_long_text_goes_on_in_a_file(log, read, event_factory):
    """Of what was written as of what is remembered."""
    words = Redacted({"messages": [{"role": "user", "content": "x" * 3_000}]})
    log.append([event_factory(op_class=OperationClass.REMEMBER, content=words)])
    page = read().page

    assert "x" * 1_200 + "…" in page
    assert "It goes on in <code>events.jsonl</code>" in page


def test_a_long_history_is_bounded_and_says_so(log, read, event_factory):
    """The newest part of each conversation, the newest conversations, and the file that has all."""
    log.append([event_factory(run="0", hits=n) for n in range(ENTRIES_SHOWN + 20)])
    log.append([event_factory(run=f"{n}") for n in range(1, CONVERSATIONS_SHOWN + 5)])
    log.append([event_factory(run="0", hits=n) for n in range(ENTRIES_SHOWN)])
    page = read().page

    assert page.count("<details class=conversation") == CONVERSATIONS_SHOWN
    assert "5 earlier conversations are not on this page" in page
    assert f"{ENTRIES_SHOWN + 20:,} earlier ones are not on this page" in page
    assert f"Looked up {2 * ENTRIES_SHOWN + 20} times." in page
    assert "events.jsonl" in page


def test_many_memories_are_bounded_and_say_so(log, read, things, event_factory):
    """As many as a person reads, and the file that has all."""
    store, thing = things
    log.append([event_factory()])
    page = read(store("mem0", *(thing(f"m-{n}") for n in range(MEMORIES_SHOWN + 5)))).page

    assert page.count("<div class=text>") == MEMORIES_SHOWN
    assert "5 more are in <code>memories.jsonl</code>" in page
    assert f"<b>{MEMORIES_SHOWN + 5}</b>remembered now" in page


def test_what_was_seen_is_told_in_words(log, read, things, event_factory):
    """An id says nothing to a customer: the memory that it stands for does."""
    store, thing = things
    log.append([event_factory(memory_ids=("m-1", "gone"), scores=(0.9, 0.1))])
    page = read(store("mem0", thing("m-1", "likes oolong"))).page

    assert "It was shown:<ul><li>likes oolong</li>" in page
    assert "1 entry whose text is not on this page" in page
    assert "m-1" not in page
    assert "gone" not in page


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("tea " * 100, f"<li>{'tea ' * 39}tea…</li>"),
        ("x" * 300, f"<li>{'x' * 160}…</li>"),
        (f"{'x' * 150} <EMAIL_ADDRESS> or so", f"<li>{'x' * 150}…</li>"),
    ],
    ids=["words", "one word", "a placeholder"],
)
def test_what_was_seen_is_shortened_and_never_to_nothing(
    log, read, things, event_factory, text, shown
):
    """At the end of a word, if there is one: what stands for personal data stays whole."""
    store, thing = things
    log.append([event_factory(memory_ids=("m-1",), scores=(0.9,))])

    assert f"It was shown:<ul>{shown}" in read(store("mem0", thing("m-1", text))).page


def test_incomplete_is_the_first_thing_that_is_said(log, read, things, event_factory):
    """Which store, and that it is not the whole answer."""
    store, _thing = things
    log.append([event_factory()])
    page = read(store("mem0", fails=TimeoutError("secret"))).page

    assert page.index("Incomplete:") < page.index("remembered now")
    assert "the store could not be read." in page
    assert "TimeoutError" not in page
    assert "(<code>mem0</code>): not known</h3>" in page
    assert "secret" not in page


def test_that_nothing_is_left_is_told(tmp_path, subject_keys, read, event_factory):
    """No data, in so many words, of somebody who is known."""
    outlive(tmp_path / "audit.db", subject_keys, event_factory)

    assert "No data is held about you." in read().page


def test_the_operators_notice_is_on_it(log, read, event_factory):
    """Who is responsible, and what for."""
    log.append([event_factory()])
    art15 = {"purposes": ["support", "sales"], "legal_bases": {"support": "contract"}}
    notice = Notice(controller={"name": "North & Co", "contact": "dpo@north.example"}, art15=art15)
    page = read(notice=notice).page

    assert "North &amp; Co" in page
    assert "support, sales" in page
    assert "support: contract" in page
    assert "Write to: <b>dpo@north.example</b>" in page
    assert "complain (Art. 77) to a data protection authority (" in page


def test_portability_tells_no_consultations(log, read, event_factory):
    """They are not what the person gave."""
    log.append([event_factory(op_class=OperationClass.REMEMBER), event_factory()])
    page = read(kind=RequestType.PORTABILITY).page

    assert "What you gave our AI agents to remember" in page
    assert "id=used" not in page


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


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (
            {"messages": [{"type": "human", "content": "tea?"}, {"type": "ai", "content": "yes"}]},
            "You: tea?\nThe agent: yes",
        ),
        ({"messages": [{"type": "message", "role": "user", "content": "a"}, "b"]}, "You: a\nb"),
        ({"messages": [{"type": "ai", "content": "", "tool_calls": []}]}, ""),
        ({"messages": "tea?", "step": 3}, "tea?"),
        ("9 messages", "9 messages"),
    ],
)
def test_a_conversation_tells_who_said_what(content, shown):
    """A line each; a message without words is none, and other content is as elsewhere."""
    assert dialogue(content) == shown


def test_a_deletion_is_among_what_was_removed(log, read, event_factory):
    """How often; an agent that deleted is told with the conversation."""
    log.append([event_factory(op_class=OperationClass.FORGET) for _ in range(3)])

    assert "<li>3 times, agents deleted something that was remembered." in read().page


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


def test_each_memory_tells_its_story(log, read, things, event_factory):
    """Who noted it when and what for, how often it was looked up; no ids, nothing "unchanged"."""
    store, thing = things
    content = Redacted({"messages": "I like oolong"})
    write = {"op_class": OperationClass.REMEMBER, "memory_ids": ("m-1",), "content": content}
    log.append([event_factory(**write, agent="sales", purpose="support")])
    log.append([event_factory(memory_ids=("m-1",), scores=(0.9,)) for _ in range(2)])
    page = read(store("mem0", thing("m-1", "I like oolong"), thing("m-7", "Has a dog"))).page

    assert (
        "You said this on 14 November 2023, and the agent “sales” noted it (purpose: support). "
        "Looked up 2 times, last on 14 November 2023."
    ) in page
    assert "Kept since 1 November 2026. Where it came from is not recorded." in page
    assert "unchanged" not in page
    assert "m-1" not in page


def test_recipients_are_told_in_words(log, read, event_factory):
    """What each received, and whether anything that was said."""
    log.append([event_factory()])
    outputs = {
        "logs": {"kind": "file", "content": True, "subject": "keyed hash", "part": "all"},
        "prometheus": {"kind": "metrics", "content": False, "subject": "none", "part": "sums"},
        "mine": None,
    }
    sinks = [{"name": name, "output": out, "ranges": [[1, 1, 1]]} for name, out in outputs.items()]
    log.append_log_event("recipients.delivered", {"writer": "00000000000000aa", "sinks": sinks})
    page = read().page

    assert "<b>Log (file)</b><div>What was said, with personal details replaced, and that" in page
    assert "Sums and durations, in which nobody is named" in page
    assert "<b>mine</b><div>Monitoring. What it passes on is not recorded." in page
    assert "Cannot tell" not in page


def test_nothing_on_it_is_wider_than_the_screen(page):
    """Whatever a long word, a key or a table would do: it may break anywhere, and there is none."""
    style = re.search(r"<style>(.*?)</style>", page, flags=re.DOTALL)[1]

    assert "table" not in Reader(page).tags
    assert "nowrap" not in style
    assert "overflow-wrap: anywhere" in style
    assert "* { box-sizing: border-box; min-width: 0; }" in style
    columns = re.findall(r"grid-template-columns: ([^;]+);", style)
    assert len(columns) == 5
    assert all("minmax(0, 1fr)" in each or "min(100%" in each for each in columns)
