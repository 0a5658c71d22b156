"""The severity table: nine kinds of change of what a tool takes, wherever in its schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from mnemoscope.adapters.mcp import changes
from tests.kit.instance_classifier import classified
from tests.kit.lengths import examples

ChangeKind, Severity, gravest = changes.ChangeKind, changes.Severity, changes.gravest
changes_of_arguments = changes.changes_of_arguments

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}


def takes(required: dict[str, Any], /, **optional: Any) -> dict[str, Any]:
    """Return the input schema of a tool."""
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": sorted(required),
    }


SEARCH = takes({"query": TEXT}, limit=NUMBER, order={"enum": ["new", "old"]})

ROWS = {
    "required parameter added": (
        takes({"query": TEXT, "tenant": TEXT}, limit=NUMBER, order={"enum": ["new", "old"]}),
        ChangeKind.REQUIRED_ADDED,
        Severity.BREAKING,
    ),
    "required parameter removed": (
        takes({}, limit=NUMBER, order={"enum": ["new", "old"]}),
        ChangeKind.REQUIRED_REMOVED,
        Severity.BREAKING,
    ),
    "type changed": (
        takes({"query": NUMBER}, limit=NUMBER, order={"enum": ["new", "old"]}),
        ChangeKind.TYPE_CHANGED,
        Severity.BREAKING,
    ),
    "enum value removed": (
        takes({"query": TEXT}, limit=NUMBER, order={"enum": ["new"]}),
        ChangeKind.ENUM_VALUE_REMOVED,
        Severity.BREAKING,
    ),
    "likely renamed": (
        takes({"search_query": TEXT}, limit=NUMBER, order={"enum": ["new", "old"]}),
        ChangeKind.LIKELY_RENAME,
        Severity.BREAKING,
    ),
    "optional parameter removed": (
        takes({"query": TEXT}, order={"enum": ["new", "old"]}),
        ChangeKind.OPTIONAL_REMOVED,
        Severity.WARN,
    ),
    "optional parameter added": (
        takes({"query": TEXT}, limit=NUMBER, order={"enum": ["new", "old"]}, cursor=TEXT),
        ChangeKind.OPTIONAL_ADDED,
        Severity.ALLOW,
    ),
    "enum value added": (
        takes({"query": TEXT}, limit=NUMBER, order={"enum": ["new", "old", "best"]}),
        ChangeKind.ENUM_VALUE_ADDED,
        Severity.ALLOW,
    ),
    "description changed": (
        takes(
            {"query": {**TEXT, "description": "In French."}},
            limit=NUMBER,
            order={"enum": ["new", "old"]},
        ),
        ChangeKind.DESCRIPTION_CHANGED,
        Severity.WARN,
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_each_row_of_the_table_is_recognised_by_itself(row):
    """One change is one row, with its severity and nothing else."""
    new, kind, severity = ROWS[row]

    found = changes_of_arguments(SEARCH, new)

    assert [(each.kind, each.severity) for each in found] == [(kind, severity)]


@pytest.mark.parametrize(
    ("definitions", "severity"),
    [({"number": NUMBER}, Severity.ALLOW), ({}, Severity.BREAKING)],
    ids=["defined", "nowhere"],
)
def test_values_are_asked_for_by_what_the_later_schema_refers_to(definitions, severity):
    """What a reference leads to decides, and one that leads nowhere accepts nothing."""
    before = takes({"pages": {"enum": [[1], [2]]}})
    numbers = {"type": "array", "items": {"$ref": "#/$defs/number"}}
    after = {**takes({"pages": numbers}), "$defs": definitions}

    assert gravest(changes_of_arguments(before, after)) is severity


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("place", ["nested", "list", "reference", "alternative"])
def test_each_row_is_recognised_inside_of_other_schemas(row, place):
    """Objects in objects and lists, behind references, and one of several alternatives."""
    new, kind, severity = ROWS[row]

    def around(inner: dict[str, Any]) -> dict[str, Any]:
        match place:
            case "nested":
                return takes({"filter": inner})
            case "list":
                return takes({"filter": {"type": "array", "items": inner}})
            case "reference":
                return takes({"filter": {"$ref": "#/$defs/F"}}) | {"$defs": {"F": inner}}
        return takes({"filter": {"anyOf": [inner, {"type": "null"}]}})

    found = changes_of_arguments(around(SEARCH), around(new))

    assert [(each.kind, each.severity) for each in found] == [(kind, severity)]
    assert found[0].path.startswith("filter")


def test_a_rename_names_both_parameters():
    """The agent and the human are told what it was and what it is."""
    (found,) = changes_of_arguments(SEARCH, ROWS["likely renamed"][0])

    assert (found.path, found.now) == ("query", "search_query")
    assert str(found) == "query: likely renamed to search_query"


def test_a_renamed_optional_parameter_waits_for_a_human():
    """By the table a removed parameter with a similar new one blocks, required or not."""
    new = takes({"query": TEXT}, max_limit=NUMBER, order={"enum": ["new", "old"]})

    assert gravest(changes_of_arguments(SEARCH, new)) is Severity.BREAKING


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"type": "string"}, {"type": ["string", "null"]}),
        ({"type": ["null", "string"]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"type": "integer"}, {"type": "number"}),
        ({"const": "a"}, {"enum": ["a", "b"]}),
        ({"enum": ["a", 1]}, {"type": ["string", "integer"]}),
        ({"type": "integer", "maximum": 5}, {"type": "integer", "maximum": 9}),
        ({"type": "string", "pattern": "^a"}, {"type": "string"}),
        ({"type": "object"}, {"type": "object", "additionalProperties": True}),
    ],
)
def test_a_wider_type_is_allowed(old, new):
    """What was valid is valid."""
    assert gravest(changes_of_arguments(takes({"a": old}), takes({"a": new}))) is Severity.ALLOW


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"type": ["string", "null"]}, {"type": "string"}),
        ({"type": "number"}, {"type": "integer"}),
        ({"type": "string"}, {"enum": ["a"]}),
        ({"type": "boolean"}, {"const": True}),
        ({"type": "integer"}, {"type": "integer", "minimum": 1}),
        ({"type": "string"}, {"type": "string", "pattern": "^a"}),
        ({"type": "object"}, {"type": "object", "additionalProperties": False}),
        ({"type": "object"}, {"type": "object", "additionalProperties": TEXT}),
        ({"type": "string"}, {"type": "string", "not": {"const": "a"}}),
        ({}, TEXT),
        (TEXT, {"$ref": "https://elsewhere.example/schema"}),
        (TEXT, False),
    ],
)
def test_a_narrower_type_is_breaking(old, new):
    """What was valid may not be: what is not understood counts as narrower."""
    assert gravest(changes_of_arguments(takes({"a": old}), takes({"a": new}))) is Severity.BREAKING


def test_a_schema_that_holds_itself_is_compared():
    """A tree of nodes ends."""

    def tree(value: dict[str, Any]) -> dict[str, Any]:
        node = takes({"value": value}, children={"type": "array", "items": {"$ref": "#/$defs/N"}})
        return takes({"root": {"$ref": "#/$defs/N"}}) | {"$defs": {"N": node}}

    assert changes_of_arguments(tree(TEXT), tree(TEXT)) == []
    assert gravest(changes_of_arguments(tree(TEXT), tree(NUMBER))) is Severity.BREAKING


def test_a_schema_made_to_take_for_ever_is_breaking():
    """A server cannot keep the agent busy with its schema."""

    def deep(least: dict[str, Any], depth: int = 9) -> dict[str, Any]:
        if depth == 0:
            return least
        inner = [takes({f"a{each}": deep(least, depth - 1)}) for each in range(4)]
        return {"anyOf": inner}

    found = changes_of_arguments(takes({"a": deep(TEXT, 6)}), takes({"a": deep(NUMBER, 6)}))

    assert gravest(found) is Severity.BREAKING


@pytest.mark.parametrize(
    ("new", "severity"),
    [
        (takes({"hits": NUMBER, "more": TEXT}), Severity.ALLOW),
        (takes({}, hits=NUMBER), Severity.BREAKING),
        (takes({"hits": TEXT}), Severity.BREAKING),
        (takes({"total": TEXT}), Severity.BREAKING),
        (None, Severity.WARN),
    ],
)
def test_a_result_that_lacks_what_was_promised_is_breaking(new, severity):
    """Of results the question is turned: the agent must find what it expects."""
    assert gravest(changes.changes_of_results(takes({"hits": NUMBER}), new)) is severity


# -- random changes against the classifier by instances --------------------------------------------

NAMES = ("query", "limit", "order", "tenant", "cursor")
ALIKE = {name: f"search_{name}" for name in NAMES}
SCALARS = (
    st.sampled_from(("string", "integer", "number", "boolean")).map(lambda each: {"type": each})
    | st.lists(st.sampled_from(("a", "b", "c", 7)), min_size=1, unique=True).map(
        lambda each: {"enum": each}
    )
    | st.builds(
        lambda least, most: {"type": "integer", "minimum": least, "maximum": most},
        st.integers(-2, 2),
        st.integers(3, 9),
    )
    | st.lists(st.sampled_from(("string", "integer", "null")), min_size=2, unique=True).map(
        lambda each: {"type": each}
    )
)


@st.composite
def parameters(draw: Any) -> dict[str, Any]:
    """Return a parameter's schema, plain, in a list, in alternatives or in an object."""
    plain = draw(SCALARS)
    match draw(st.sampled_from(("plain", "plain", "list", "alternatives", "object"))):
        case "list":
            return {"type": "array", "items": plain}
        case "alternatives":
            return {"anyOf": [plain, {"type": "null"}]}
        case "object":
            return takes({"key": plain}, **draw(st.just({}) | st.just({"note": TEXT})))
    return plain


@st.composite
def tools(draw: Any) -> dict[str, Any]:
    """Return the input schema of a tool with up to four parameters."""
    names = draw(st.lists(st.sampled_from(NAMES[:4]), min_size=1, max_size=4, unique=True))
    schema = {
        "type": "object",
        "properties": {name: draw(parameters()) for name in names},
        "required": draw(st.lists(st.sampled_from(names), unique=True)),
    }
    if draw(st.booleans()):
        name = names[0]
        schema["$defs"] = {"P": schema["properties"][name]}
        schema["properties"][name] = {"$ref": "#/$defs/P"}
    return schema


@st.composite
def changed(draw: Any, old: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return *old* after one or two changes, and whether a parameter was renamed."""
    new = json.loads(json.dumps(old))
    renamed = False
    for _ in range(draw(st.integers(1, 2))):
        at, required = new["properties"], new["required"]
        kind = draw(st.sampled_from(("add", "remove", "schema", "needed", "rename")))
        name = draw(st.sampled_from(sorted(at))) if at else None
        if kind == "add" and "cursor" not in at:
            at["cursor"] = draw(parameters())
            required += draw(st.sampled_from(([], ["cursor"])))
        elif name is None or name not in old["properties"]:
            continue
        elif kind == "remove":
            del at[name]
            new["required"] = [each for each in required if each != name]
        elif kind == "schema":
            at[name] = draw(parameters())
        elif kind == "needed":
            others = [each for each in required if each != name]
            new["required"] = others if name in required else [*others, name]
        elif kind == "rename":
            at[ALIKE[name]] = at.pop(name)
            new["required"] = [ALIKE[name] if each == name else each for each in required]
            renamed = True
    return new, renamed


@given(st.data())
@settings(max_examples=examples(500), deadline=None, suppress_health_check=list(HealthCheck))
def test_random_changes_are_classified_as_by_instances(data):
    """
    Whether an agent that knows the earlier schema is still understood decides, for 500 changes.

    Of renames the table says more than instances do: they block, though an optional is missed.
    """
    old = data.draw(tools())
    new, renamed = data.draw(changed(old))
    assume(new != old)

    found = gravest(changes_of_arguments(old, new))
    expected = "breaking" if renamed else classified(old, new)

    assert found.name.lower() == expected


@given(tools(), st.randoms(use_true_random=False))
@settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
def test_the_order_of_keys_and_white_space_change_nothing(schema, order):
    """The same schema written otherwise has no change."""

    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            pairs = [(key, shuffled(each)) for key, each in value.items()]
            order.shuffle(pairs)
            return {
                key: order.sample(each, len(each)) if key in {"required", "enum"} else each
                for key, each in pairs
            }
        return value

    described = schema | {"description": "Finds\n  notes."}
    again = json.loads(json.dumps(shuffled(schema) | {"description": " Finds notes. "}, indent=3))

    assert changes_of_arguments(described, again) == []


def test_a_change_says_no_value_of_a_users():
    """Lines name parameters, which are the server's."""
    change = changes.Change(
        kind=ChangeKind.TYPE_CHANGED, severity=Severity.BREAKING, path="filter.limit"
    )

    assert str(change) == "filter.limit: type changed"
