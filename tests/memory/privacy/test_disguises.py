"""What is undone of a disguise, and the way back to where it stood."""

from hypothesis import example, given
from hypothesis import strategies as st

from mnemoscope.memory.privacy.detectors.normalized_text import normalize_text

ADDRESS = "ada.quill@mail.example.com"
AROUND = st.text(st.sampled_from("abc XYZ,.;\n\u200b\uff21\u0301\u0661é用 "), max_size=12).map(
    lambda text: f"{text}; "
)
AT = st.sampled_from(("@", " at ", " AT ", " (at) ", "[at]", "_at_", " arroba ", " (a) ", "\uff20"))
DOT = st.sampled_from((".", " dot ", " DOT ", "[dot]", " (punto) ", "\uff0e"))
PHONE = "+4917112345678"


def written(at: str, dot: str) -> str:
    """Return the address with other signs; bare words have to agree with one another."""
    local, _, host = ADDRESS.partition("@")
    return local + at + host.replace(".", dot)


@given(AROUND, AT, DOT, AROUND)
@example("", " at ", " dot ", "")
def test_an_undone_address_leads_back_to_all_of_its_disguise(before, at, dot, after):
    """From its first letter to its last, and no further."""
    disguised = written(at, dot)
    text = before + disguised + " ;" + after
    view = normalize_text(text)
    start = view.text.find(ADDRESS)
    if start == -1 and at == " at " and dot in {".", "\uff0e"}:
        return  # "at" between a name and a host is an ordinary word without a sign of an address

    assert start != -1
    first, last = view.original_span(start, start + len(ADDRESS))
    assert text[first:last] == disguised


@given(AROUND, st.sampled_from((" ", "\u00a0", "-")), AROUND)
def test_digits_of_any_script_lead_back_to_themselves(before, joint, after):
    """One for one: the view is as long as the text."""
    arabic = (
        "".join(chr(0x0660 + int(digit)) for digit in "0171")
        + joint
        + "".join(chr(0x0966 + int(digit)) for digit in "3456789")
    )
    text = before + arabic + " ;" + after
    view = normalize_text(text)
    start = view.text.rfind("3456789", 0, len(view.text)) - 5

    first, last = view.original_span(start, start + 12)
    assert text[first:last] == arabic


@given(st.text(max_size=60))
def test_every_span_of_a_view_is_a_span_of_the_text(text):
    """Whatever was undone: in order, and inside."""
    view = normalize_text(text)
    spans = [view.original_span(at, at + 1) for at in range(len(view.text))]

    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert [start for start, _ in spans] == sorted(start for start, _ in spans)


_WORDS = ["dot", "meet", "the", "5", "(", ")", "."]


@given(
    st.lists(st.sampled_from([*_WORDS, "at"]), max_size=12)
    # Beside a sign that is one in any text, "at" is the ending of a host in Austria.
    | st.lists(st.sampled_from([*_WORDS, "arroba"]), max_size=12)
)
def test_words_that_are_no_address_stay(words):
    """Without a host and its ending there is nothing to undo."""
    text = " ".join(words)

    assert normalize_text(text).text == text


def test_a_line_break_inside_an_address_is_undone():
    """After the sign, and where the host was hyphenated."""
    for text in ("ada@\nexample.com", "ada@exam-\nple.com", "mail ad-\na@example.com"):
        assert "ada@example.com" in normalize_text(text).text
