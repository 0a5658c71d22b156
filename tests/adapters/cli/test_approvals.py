"""``mnemoscope approvals``: list, show, decide, agreement, reset."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import pytest
from langgraph.store.memory import InMemoryStore

from mnemoscope.adapters.cli.root import run
from mnemoscope.memory import (
    Approval,
    Draft,
    Facts,
    HeldError,
    Mnemoscope,
    Point,
    RefusedError,
    context,
    load_settings,
)
from mnemoscope.memory.health.live_metrics import LiveMetrics
from mnemoscope.memory.rules import held_writes
from tests.kit.held_writes import Quarantine, held_write
from tests.kit.patience import GIVE_UP_S


@pytest.fixture(autouse=True)
def settings(monkeypatch, tmp_path):
    """Have the command find the trail by the environment."""
    for name in list(os.environ):
        if name.startswith("MNEMOSCOPE_"):
            monkeypatch.delenv(name)
    monkeypatch.setattr(held_writes, "LOOK_AGAIN_S", 0.0)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_URL", f"sqlite:///{tmp_path}/audit.db")
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY_FILE", str(tmp_path / "no-key"))
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", "ab" * 32)
    return load_settings(sinks="audit", pii_model="none")


@pytest.fixture
def scope(settings):
    made = Mnemoscope(settings, rules=[Quarantine()])
    yield made
    made.close()


def held(scope, key="k"):
    """Have a write held, and return it and its approval."""
    store = scope.store(InMemoryStore())

    def write():
        with context(customer="ada", run="r-1"):
            store.put(("facts",), key, {"likes": "marzipan, says bob@example.com"})

    with pytest.raises(HeldError) as raised:
        write()
    assert scope.flush()
    return write, raised.value.approval


def printed(capfd):
    return json.loads(capfd.readouterr().out)


def test_a_held_write_of_any_rule_is_listed_shown_and_released(scope, capfd):
    """Its content is shown redacted to who has the key, and nowhere in the list."""
    write, approval = held(scope)

    assert run(["approvals", "list"]) == 0
    listed = capfd.readouterr().out
    assert max(map(len, listed.splitlines())) <= 80
    assert approval in listed
    assert "from_outside" in listed
    assert "marzipan" not in listed
    assert run(["approvals", "show", approval]) == 0
    shown = capfd.readouterr().out
    assert "marzipan, says <EMAIL_ADDRESS>" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert (
        run(["approvals", "decide", approval, "approve", "--decided-by", "grace", "--why", "fine"])
        == 0
    )
    capfd.readouterr()
    write()
    assert run(["approvals", "list"]) == 0
    assert "Nothing waits" in capfd.readouterr().out


def test_json_has_what_the_screens_have(scope, capfd):
    """For scripts."""
    _write, approval = held(scope)

    run(["approvals", "list", "--json"])
    (listed,) = printed(capfd)
    run(["approvals", "show", approval, "--json"])
    shown = printed(capfd)

    assert (listed["approval"], listed["decision"], listed["asks"]) == (approval, None, 1)
    assert shown["content"]["value"] == {"likes": "marzipan, says <EMAIL_ADDRESS>"}
    assert shown["run"] == "r-1"


def test_a_rejected_write_stays_refused_and_is_decided_once(scope, capfd):
    """The second decision is told that there is one."""
    write, approval = held(scope)

    assert run(["approvals", "decide", approval, "reject", "--decided-by", "grace"]) == 0
    assert run(["approvals", "decide", approval, "approve", "--decided-by", "eve"]) == 2
    assert "decided already: reject" in capfd.readouterr().err
    with pytest.raises(RefusedError):
        write()
    run(["approvals", "list", "--all", "--json"])
    assert printed(capfd)[0]["decision"] == "reject"


@pytest.mark.parametrize("is_typed", [False, True])
def test_an_edited_write_is_made_with_the_text_of_a_file(
    scope, capfd, tmp_path, monkeypatch, is_typed
):
    """Or of standard input; in no list of processes. It is redacted as what is written is."""
    approval, text = held_write(scope), "likes nougat, says bob@example.com\n"
    (tmp_path / "text").write_text(text, "utf-8")
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    source = "-" if is_typed else f"{tmp_path / 'text'}"

    code = run(["approvals", "decide", approval, "edit", "--decided-by", "grace", "--text", source])

    inner = InMemoryStore()
    with context(customer="ada", run="r-1"):
        scope.store(inner).put(("facts",), "k", {"text": "likes marzipan"})
    assert code == 0
    assert inner.get(("facts",), "k").value == {"text": "likes nougat, says <EMAIL_ADDRESS>"}


@pytest.mark.parametrize(
    ("choice", "text", "source"),
    [("approve", "tea", "text"), ("edit", " \n", "text"), ("edit", "tea", "no-such-file")],
)
def test_a_text_that_cannot_be_written_decides_nothing(
    scope, capfd, tmp_path, choice, text, source
):
    """One line says why."""
    approval, file = held_write(scope), tmp_path / source
    (tmp_path / "text").write_text(text, "utf-8")

    assert (
        run(["approvals", "decide", approval, choice, "--decided-by", "g", "--text", f"{file}"])
        == 4
    )
    assert len(capfd.readouterr().err.splitlines()) == 1
    run(["approvals", "list", "--json"])
    assert printed(capfd)[0]["decision"] is None


def test_what_was_used_up_waits_again_and_is_decided_again(scope):
    """Each approval is good for one write."""
    write, approval = held(scope)
    for _ in range(2):
        assert run(["approvals", "decide", approval, "approve", "--decided-by", "grace"]) == 0
        write()
        assert run(["approvals", "decide", approval, "approve", "--decided-by", "grace"]) == 2
        with pytest.raises(HeldError):
            write()
        assert scope.flush()


def test_to_skip_leaves_it_waiting(scope, capfd):
    """As often as one likes."""
    _write, approval = held(scope)

    assert run(["approvals", "decide", approval, "skip", "--decided-by", "grace"]) == 0
    assert run(["approvals", "decide", approval, "skip", "--decided-by", "grace"]) == 0
    capfd.readouterr()
    run(["approvals", "list", "--json"])
    assert printed(capfd)[0]["decision"] is None


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["show", "0123"], 2),
        (["decide", "0123", "approve", "--decided-by", "grace"], 2),
        (["decide", "0123", "used", "--decided-by", "grace"], 4),
        (["decide", "0123", "maybe", "--decided-by", "grace"], 4),
        (["decide", "0123", "approve"], 4),
        (["reset", "nothing"], 4),
        (["agreement"], 3),
    ],
)
def test_mistakes_end_in_a_line_and_a_code(scope, capfd, arguments, code):
    """And change nothing."""
    held(scope)

    assert run(["approvals", *arguments]) == code
    assert len(capfd.readouterr().err.splitlines()) == 1


def test_a_reason_is_a_code(scope, capfd):
    """A sentence may hold what nobody should keep."""
    _write, approval = held(scope)

    code = run(
        ["approvals", "decide", approval, "approve", "--decided-by", "grace", "--why", "A friend."]
    )

    assert code == 4
    assert "friend" not in capfd.readouterr().err


def test_without_a_key_nothing_is_shown_and_none_is_made(scope, capfd, monkeypatch, tmp_path):
    """The content is for who has the key."""
    _write, approval = held(scope)
    monkeypatch.delenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY")

    assert run(["approvals", "show", approval]) == 4
    assert run(["approvals", "decide", approval, "approve", "--decided-by", "grace"]) == 4
    assert "marzipan" not in capfd.readouterr().out
    assert not list(tmp_path.rglob("*key*"))


def test_agreement_is_shown_and_reset(settings, capfd):
    """The mode of a gate, what humans have decided, and what waits."""
    gate = Approval("refunds", outcome=lambda _text: 1.0)
    scope = Mnemoscope(settings)
    scope.bind_rule(gate)
    for number in range(3):
        scope.tell_verdict(gate, Facts(Point.NODE, known=gate.facts(_draft(), f"a{number}")))
    scope.close()

    assert run(["approvals", "agreement"]) == 0
    shown = capfd.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert run(["approvals", "agreement", "--json"]) == 0
    (found,) = printed(capfd)
    assert (found["gate"], found["mode"], found["waiting"]) == ("refunds", "shadow", 3)
    assert run(["approvals", "reset", "refunds"]) == 0
    assert "refunds is in mode shadow" in capfd.readouterr().out


def _draft():
    return Draft("Dear customer")


def held_draft(settings, **options):
    """Have a gate leave a draft to a human, and return the approval."""
    gate = Approval("refunds", goldens={"amount": 30}, **options)
    scope = Mnemoscope(settings)
    scope.bind_rule(gate)
    draft = Draft("marzipan {{first_name}}", steps=["looked it up"], values={"amount": 31})
    facts = Facts(Point.NODE, known=gate.facts(draft, "a0"))
    scope.tell_verdict(gate, facts, lambda redact: gate.detail(draft, redact))
    scope.close()
    return "a0"


def test_a_draft_is_shown_with_its_evidence_and_decided(settings, capfd):
    """Where the trail is: the run takes the decision as it is resumed."""
    approval = held_draft(settings)

    assert run(["approvals", "list"]) == 0
    assert "marzipan" not in capfd.readouterr().out
    assert run(["approvals", "show", approval]) == 0
    shown = capfd.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    for each in ("marzipan {{first_name}}", "looked it up", '"golden":30', "violation"):
        assert each in shown
    assert run(["approvals", "decide", approval, "reject", "--decided-by", "grace"]) == 0
    assert run(["approvals", "decide", approval, "approve", "--decided-by", "eve"]) == 2
    assert "decided already: reject" in capfd.readouterr().err
    run(["approvals", "agreement", "--json"])
    assert printed(capfd)[0]["agreed"] == 1


def test_a_blind_draft_is_shown_without_the_verdict_until_it_is_decided(settings, capfd):
    """In no command, on no screen and in no JSON; with the decision it is shown, and counted."""
    approval = held_draft(settings, blind=1.0)
    commands = [["list"], ["show", approval]]

    for command in [each + more for each in commands for more in ([], ["--json"])]:
        assert run(["approvals", *command]) == 0
        shown = capfd.readouterr().out
        assert not [
            each for each in ("violation", "composite", "mismatch", "code") if each in shown
        ]
        assert "blind" in shown
    assert run(["approvals", "decide", approval, "approve", "--decided-by", "grace"]) == 0
    assert "the gate had said: no pass" in capfd.readouterr().out
    run(["approvals", "show", approval])
    assert "violation" in capfd.readouterr().out
    run(["approvals", "agreement", "--json"])
    (found,) = printed(capfd)
    assert (found["decided"], found["blind_decided"], found["blind_agreed"]) == (1, 1, 0)


def test_two_processes_decide_at_once_and_one_decision_is_sealed(settings, capfd):
    """The other is told which one holds."""
    approval = held_draft(settings)
    program = (
        "import sys; from mnemoscope.adapters.cli.root import run; sys.exit(run(sys.argv[1:]))"
    )
    decided, choices = ("approvals", "decide", approval), ("approve", "reject")

    started = [
        subprocess.Popen(
            [sys.executable, "-c", program, *decided, each, "--decided-by", each],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for each in choices
    ]
    said = [each.communicate(timeout=GIVE_UP_S)[1].decode() for each in started]

    assert sorted(each.returncode for each in started) == [0, 2]
    winner = choices[[each.returncode for each in started].index(0)]
    assert f"decided already: {winner}" in "".join(said)
    run(["approvals", "show", approval, "--json"])
    assert printed(capfd)["decision"] == winner


def test_a_trail_with_approvals_verifies_and_is_made_again(settings, capfd):
    """Verdicts, decisions, what they used up and changes of mode are events like all others."""
    scope = Mnemoscope(settings, rules=[Approval("g", places=["*"])])
    write, approval = held(scope)
    run(["approvals", "decide", approval, "approve", "--decided-by", "grace"])
    write()
    run(["approvals", "reset", "g"])
    scope.close()
    capfd.readouterr()

    assert run(["audit", "verdicts"]) == 0
    assert "5 of 5 verdicts follow from their facts" in capfd.readouterr().out
    assert run(["audit", "verify"]) == 0


def test_what_waits_and_how_far_humans_agree_are_metrics(settings, capfd):
    """Read from the trail, whoever has decided; what cannot be read costs these metrics alone."""
    scope = Mnemoscope(settings, rules=[Approval("g", outcome=lambda _text: 1.0, places=["*"])])
    accounting = scope._parts.accounting
    parts = scope._parts
    others = [each.samples for each in parts.features if each.samples is not None]
    live = LiveMetrics(parts.guards, others=others)
    approvals = [held(scope, key)[1] for key in ("a", "b", "c")]
    run(["approvals", "decide", approvals[0], "approve", "--decided-by", "grace"])
    run(["approvals", "decide", approvals[1], "edit", "--decided-by", "grace"])

    found = {each.name: each.value for each in live.read() if "approval" in each.name}

    assert found == {
        "mnemoscope_approval_agreement_ratio": 0.5,
        "mnemoscope_approval_auto": 0.0,
        "mnemoscope_approvals_waiting": 1,
    }
    accounting.decisions = None
    assert not [each for each in live.read() if "approval" in each.name]
    capfd.readouterr()
    scope.close()


def test_verdicts_of_no_version_are_said_to_count_for_none(settings, capfd):
    """As those of before versions were recorded: here of a gate that no scope was given."""
    gate = Approval("refunds", outcome=lambda _text: 1.0)
    scope = Mnemoscope(settings)
    scope.tell_verdict(gate, Facts(Point.NODE, known=gate.facts(_draft(), "a0")))
    scope.close()
    assert run(["approvals", "decide", "a0", "approve", "--decided-by", "grace"]) == 0
    capfd.readouterr()

    assert run(["approvals", "agreement"]) == 0
    printed_lines = capfd.readouterr()
    assert "count for no version" in printed_lines.err
    assert "unknown" in printed_lines.out
    assert "none" in printed_lines.out


# -- goldens -------------------------------------------------------------------------------------

FOUR = """
- name: clean pass
  draft: Your refund of 30 euros is on its way.
  values: {amount: 30}
  expect: pass
- name: step mismatch
  draft: Your refund of 31 euros is on its way.
  values: {amount: 31}
  expect: below_bar
- name: hard veto
  draft: Dear {{first_name}}, your refund is on its way.
  values: {amount: 30}
  expect: violation
- name: empty run
  expect: violation
"""

GATE = Approval("refunds", goldens={"amount": 30}, outcome=lambda _text: 0.9)
LENIENT = Approval("refunds", outcome=lambda _text: 0.9)
FAILING = Approval("refunds", outcome=lambda _text: 1 / 0, goldens={"amount": 30})
HERE = __name__


def check_goldens(tmp_path, text, gate="GATE"):
    file = tmp_path / "goldens.yaml"
    file.write_text(text)
    return run(["approvals", "check", str(file), "--gate", f"{HERE}:{gate}"])


def test_a_gate_that_says_what_its_goldens_expect_is_well(tmp_path, capfd):
    """All four kinds; nothing of a draft is printed."""
    assert check_goldens(tmp_path, FOUR) == 0

    shown = capfd.readouterr().out
    assert "4 of 4 as expected" in shown
    assert "refund" not in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(("gate", "right"), [("LENIENT", 3), ("FAILING", 2)])
def test_a_gate_that_says_something_else_is_not_well(tmp_path, capfd, gate, right):
    """One that lets the mismatch pass, and one whose judge fails."""
    assert check_goldens(tmp_path, FOUR, gate) == 1
    assert f"{right} of 4 as expected" in capfd.readouterr().out


def test_the_bar_of_goldens_is_that_of_production(tmp_path, capfd, monkeypatch):
    """A mean of 0.95 is a pass, until the bar is higher."""
    monkeypatch.setattr("mnemoscope.memory.rules.approval.BAR", 0.96)

    assert check_goldens(tmp_path, FOUR) == 1
    assert "3 of 4 as expected" in capfd.readouterr().out


def test_goldens_that_lack_a_kind_are_incomplete(tmp_path, capfd):
    """Whoever has but passes learns nothing of what is held."""
    assert check_goldens(tmp_path, FOUR.partition("- name: step")[0]) == 3
    assert capfd.readouterr().err.splitlines() == [
        f"there is no golden of {each}"
        for each in ("a step mismatch", "a hard veto", "an empty run")
    ]


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("- [", 4, "it is no YAML"),
        ("name: x", 4, "expected a list"),
        ("- name: x", 4, "golden 1: expected name and expect"),
        ("- {name: x, expect: pass, draught: marzipan}", 4, "golden 1: expected name"),
        ("- {name: x, expect: pass, steps: marzipan}", 4, "steps are a list"),
        ("- {name: x, expect: pass, values: [marzipan]}", 4, "values are a mapping"),
        ("- {name: x, expect: pass, values: {1: marzipan}}", 4, "values are a mapping"),
        ("- {name: x, expect: pass, draft: {a: marzipan}}", 4, "draft is a text"),
        ("- {name: , expect: pass}", 4, "name is a text"),
        ("- {name: x, expect: marzipan}", 4, "expect is one of pass, below_bar"),
        ("- {name: x, expect: Pass}", 4, "expect is one of pass, below_bar"),
        ("- {name: x, expect: [pass]}", 4, "expect is one of pass, below_bar"),
        ("- {name: 2024-13-45, expect: pass}", 4, "it is no YAML"),
        ("- " + "[" * 5_000, 4, "it is no YAML"),
    ],
)
def test_a_file_of_something_else_ends_in_a_line(tmp_path, capfd, text, code, said):
    """Which quotes none of it."""
    assert check_goldens(tmp_path, text) == code
    (line,) = capfd.readouterr().err.splitlines()
    assert said in line
    assert "marzipan" not in line


def test_a_file_of_another_encoding_ends_in_a_line(tmp_path, capfd):
    """Which says what is expected."""
    file = tmp_path / "goldens.yaml"
    file.write_bytes("- {name: Größe, expect: pass}".encode("latin-1"))

    assert run(["approvals", "check", str(file), "--gate", f"{HERE}:GATE"]) == 4
    assert capfd.readouterr().err.endswith("it is not UTF-8\n")


def test_the_name_of_a_golden_is_text_and_nothing_else(tmp_path, capfd):
    """Neither markup nor a command for the terminal."""
    text = '- {name: "a [/b] [red]c \\e[2J\\u202e", draft: hi, values: {amount: 30}, expect: pass}'

    assert check_goldens(tmp_path, text) == 3
    shown = capfd.readouterr().out
    assert "a [/b] [red]c" in shown
    assert not {"\x1b", "\u202e"} & {*shown}


def test_each_mistake_of_a_file_has_a_line(tmp_path, capfd):
    """So that a file is mended once, and not once for each."""
    text = "- {name: a, expects: pass}\n- {name: b, expect: passed, steps: x}\n- 7\n"

    assert check_goldens(tmp_path, text) == 4
    lines = capfd.readouterr().err.splitlines()
    assert [each.partition(": golden ")[2][:2] for each in lines] == ["1:", "2:", "2:", "3:"]


def test_goldens_are_held_against_a_gate(tmp_path, capfd):
    """Anything else at the address is a mistake, as a file that is not there is."""
    assert check_goldens(tmp_path, FOUR, "FOUR") == 4
    assert "not an Approval" in capfd.readouterr().err
    assert run(["approvals", "check", str(tmp_path / "none"), "--gate", f"{HERE}:GATE"]) == 2


def test_goldens_as_json_have_the_evidence(tmp_path, capfd):
    """For scripts."""
    file = tmp_path / "goldens.yaml"
    file.write_text(FOUR)
    run(["approvals", "check", str(file), "--gate", f"{HERE}:GATE", "--json"])

    found = printed(capfd)

    assert [(each["said"], each["right"]) for each in found][1] == ("below_bar", True)
    assert found[1]["evidence"]["step"] == 0.0
