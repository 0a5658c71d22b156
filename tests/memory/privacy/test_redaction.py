"""One call's redaction: free text, values, labels, lazy items, content."""

from pathlib import Path

from mnemoscope.memory.api import Redacted

MAIL = "ada@example.com"


def test_free_text_is_tagged(redaction):
    """A message that is nothing but an address is a message all the same."""
    assert redaction.text(MAIL) == "<EMAIL_ADDRESS>"


def test_a_value_that_is_an_identifier_becomes_a_pseudonym(redaction):
    """Equality filters keep their meaning: the same person, the same pseudonym, wherever it is."""
    redacted = redaction.value({"user_id": MAIL, MAIL: [MAIL.upper()]})
    key = redacted["user_id"]

    assert key.startswith("<EMAIL_ADDRESS_")
    assert redacted == {"user_id": key, key: [key]}


def test_two_customers_never_fall_together(redaction):
    """Keys that hold identifiers stay as many as they were."""
    redacted = redaction.value(
        {f"call {name}@example.com now": name for name in ("ada", "bob", "cy")}
    )

    assert len(redacted) == 3
    assert "@" not in "".join(redacted)


def test_text_in_a_value_is_tagged(redaction):
    """Only what is an identifier as a whole is a pseudonym in a value."""
    assert redaction.value(["mail ada@example.com"]) == ["mail <EMAIL_ADDRESS>"]


def test_labels_are_pseudonyms(redaction):
    """A collection that is named after a customer stays told apart from the next."""
    label = redaction.label(f"memories-{MAIL}")

    assert MAIL not in label
    assert label.startswith(("memories-<EMAIL_ADDRESS_", "<EMAIL_ADDRESS_"))


def test_counts_add_up_by_entity(redaction):
    """A call knows how many of each it replaced, cached results included."""
    for _ in range(2):
        redaction.text("ada@example.com and bob@example.com, 203.0.113.7")

    assert redaction.counts == {"EMAIL_ADDRESS": 4, "IP_ADDRESS": 2}


def test_lazy_items_are_redacted_as_they_are_pulled(redaction):
    """Nothing is taken from an iterator before the store asks for it."""
    taken = []

    def items():
        for item in (MAIL, "x"):
            taken.append(item)
            yield [item]

    lazy = redaction.iterate(items())
    before = list(taken)
    redacted = list(lazy)

    assert before == []
    assert MAIL not in str(redacted)
    assert redacted[1] == ["x"]


def test_content_is_json_and_bounded(redaction):
    """Content for sinks holds JSON types only, however deep and large it was."""
    deep = "end"
    for _ in range(100):
        deep = [deep]
    content = redaction.content(
        {"deep": deep, "big": "x" * 1_000_000, "odd": object(), 1: float("nan")}
    )

    assert isinstance(content, Redacted)
    assert "[TRUNCATED]" in str(content.value["deep"])
    assert len(content.value["big"]) < 70_000


def test_content_that_cannot_be_made_is_an_error_mark(redaction):
    """A sink gets less, never more, and no exception."""

    class Broken(dict):
        def items(self):
            raise ValueError("ada@example.com")

    assert redaction.content(Broken(a=1)).value == "[REDACTED:error]"


def test_only_this_package_builds_redacted_content():
    """`Redacted` is proof that text went through here, so nobody else makes one."""
    root = Path(__file__).parents[3]
    own = {root / "telemetry/event/event.py", *(root / "memory/privacy").rglob("*.py")}
    sources = (
        path
        for name in ("memory", "telemetry", "adapters", "audit")
        for path in (root / name).rglob("*.py")
    )

    builders = [
        path.name for path in sources if path not in own and "Redacted(" in path.read_text()
    ]

    assert builders == []
