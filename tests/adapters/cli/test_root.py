"""The command line: exit codes and one-line mistakes."""

import subprocess
import sys
from collections import defaultdict
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
import typer

from mnemoscope.adapters.cli.exit_codes import EXIT_CODES
from mnemoscope.adapters.cli.lazy_group import Group, LazyGroup
from mnemoscope.adapters.cli.root import COMMANDS, run
from mnemoscope.audit import AuditLog
from mnemoscope.memory.api import Subject
from mnemoscope.telemetry.event.subject import SubjectKeys
from tests.kit.patience import GIVE_UP_S

SECRET = bytes(range(32))


@pytest.fixture
def trail(tmp_path, monkeypatch, event_factory):
    """An audit trail that holds one write for ada and one for bob, and is the configured one."""
    keys = SubjectKeys(SECRET)
    log = AuditLog(f"sqlite:///{tmp_path}/audit.db", keys)
    people = {name: Subject(name, tenant="acme", keys=keys) for name in ("ada", "bob")}
    log.append(
        [
            event_factory(writer_seq=n, subject=people[name], tenant="acme")
            for n, name in enumerate(("ada", "bob"), start=1)
        ]
    )
    log.close()
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_URL", f"sqlite:///{tmp_path}/audit.db")
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", SECRET.hex())
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["audit", "export"], 4, "Missing option '--customer'"),
        (["frobnicate"], 4, "No such command"),
        (["audit", "export", "--customer", "x", "--audit-url", "nonsense"], 4, "must begin with"),
        (
            ["audit", "export", "--customer", "x", "--audit-url", "sqlite:////no/where"],
            3,
            "there is no",
        ),
        (["audit", "export", "--customer", "x", "--out", "/no/such/folder/x"], 2, "No such file"),
    ],
    ids=["option missing", "unknown command", "bad URL", "no database", "no folder"],
)
def test_a_mistake_ends_in_one_line(trail, capfd, arguments, code, said):
    """A user's mistake gives one line on standard error and the documented exit code."""
    ended = run(arguments)

    error = capfd.readouterr().err
    assert ended == code
    assert said in error
    assert len(error.splitlines()) == 1
    assert "Traceback" not in error


def test_a_conversation_that_is_none_ends_in_one_line(tmp_path, capfd):
    """A file that is no conversation: one line that says what is wrong, and exit code 2."""
    file = tmp_path / "shopping.txt"
    file.write_text("milk, eggs")

    code = run(["demo", "--conversation", str(file)])

    error = capfd.readouterr().err
    assert code == 2
    assert len(error.splitlines()) == 1
    assert "milk" not in error


def commands(table=COMMANDS, *above):
    """Yield each command as its words, its table's entry, and what the library made of it."""
    group = LazyGroup(table)
    for name, entry in table.items():
        if isinstance(entry, Group):
            yield from commands(entry.commands, *above, name)
        else:
            yield (*above, name), entry, group.get_command(typer.Context(group), name)


GROUPS = [[], *([name] for name, entry in COMMANDS.items() if isinstance(entry, Group))]


@pytest.mark.parametrize("words", GROUPS, ids=lambda words: "-".join(words) or "root")
def test_a_group_alone_prints_its_help(capfd, words):
    """As with ``--help``: an answer, not a mistake."""
    codes = {run(words), run([*words, "--help"])}
    alone, asked = capfd.readouterr().out.split("Usage: ")[1:]

    assert codes == {0}
    assert alone == asked


def test_the_table_says_what_the_commands_say():
    """Help reads sentences that it need not import, and they are those of the functions."""
    wrong = [
        words for words, entry, made in commands() if made.help.split("\n")[0] != entry.sentence
    ]

    assert wrong == []


def test_an_option_means_the_same_everywhere():
    """It takes the same, and is a flag everywhere or nowhere."""
    taken = defaultdict(set)
    for _words, _entry, made in commands():
        for each in made.params:
            if each.param_type_name == "option":
                taken[each.opts[-1]].add((each.metavar, each.is_flag, each.envvar))

    assert {name: found for name, found in taken.items() if len(found) > 1} == {}
    assert {"--tenant", "--json", "--since", "--out"} <= taken.keys()


@pytest.mark.parametrize("words", [*GROUPS, *(words for words, *_rest in commands())], ids=" ".join)
def test_help_fits_a_terminal(capfd, monkeypatch, words):
    """In 80 columns, nothing cut off; a flag is a word and takes none."""
    monkeypatch.setenv("COLUMNS", "80")
    run([*words, "--help"])

    said = capfd.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    assert "..." not in said.replace("[ARGS]...", "").replace("[SEQ]...", "")
    assert "<bool>" not in said


def test_exit_codes_are_told_in_help_and_docs(capfd):
    """One table, in both."""
    run(["--help"])

    said = " ".join(capfd.readouterr().out.split())
    assert all(f"{code} {meaning}" in said for code, meaning in EXIT_CODES.items())
    page = (Path(__file__).parents[3] / "docs" / "commands.md").read_text()
    assert all(f"| {code} | {meaning} |\n" in page for code, meaning in EXIT_CODES.items())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_what_may_follow(capfd, monkeypatch, shell):
    """Commands of a group, by the variables that the installed script sets."""
    monkeypatch.setenv("_MNEMOSCOPE_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("COMP_WORDS", "mnemoscope audit e")
    monkeypatch.setenv("COMP_CWORD", "2")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "mnemoscope audit e")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    with pytest.raises(SystemExit) as ended:
        run([])

    said = capfd.readouterr().out
    assert ended.value.code == 0
    assert "export" in said
    assert "erase" in said
    assert "verify" not in said


def test_help_loads_no_command():
    """Nor what commands need: a table has what help says, so that help is fast."""
    heavy = (
        "mem0 qdrant_client langgraph pydantic prometheus_client sqlite3 cryptography spacy rich "
        "importlib.metadata mnemoscope.memory mnemoscope.audit mnemoscope.telemetry"
    )
    script = (
        "import sys; before = set(sys.modules); "
        "from mnemoscope.adapters.cli.root import run; run(['--help']); "
        f"print(sorted({{*{heavy.split()}}} & (sys.modules.keys() - before)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=GIVE_UP_S,
        check=True,
    )

    assert done.stderr.strip() == "[]"


def spoiled():
    """Yield each command with what it needs, and each of its options that takes a value."""
    needed = {
        "--customer": ["--customer", "x"],
        "--memory": ["--memory", "x"],
        "seq": ["1"],
        "url": ["http://127.0.0.1:9"],
        "--key": ["--key", "x"],
        "--to": ["--to", "file://made"],
        "--out": ["--out", "made.note", "--roots", "made.pem"],
        "memory": ["x"],
        "--store": ["--store", "x"],
        "folder": ["made"],
        "approval": ["0123456789abcdef"],
        "choice": ["approve"],
        "gate": ["one"],
        "--decided-by": ["--decided-by", "x"],
        "--approved-by": ["--approved-by", "x"],
        "--against": ["--against", "no:thing"],
        "--gate": ["--gate", "no:thing"],
        "file": ["made"],
        "target": ["http://127.0.0.1:9"],
        "tool": ["x"],
    }
    for words, _entry, made in commands():
        # These check all of their options before they begin; their own tests try them.
        if words in {("demo",), ("serve",)}:
            continue
        given = [part for each in made.params if each.required for part in needed[each.opts[-1]]]
        for each in made.params:
            if each.param_type_name == "option" and not each.is_flag:
                yield [*words, *given], each.opts[-1]


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize(("words", "option"), list(spoiled()), ids=str)
def test_no_value_of_an_option_ends_in_a_traceback(trail, capfd, monkeypatch, words, option):
    """Whatever is given: an exit code of the table. A traceback would be an exception here."""
    monkeypatch.chdir(trail)
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO()))
    file = trail / "bytes"
    file.write_bytes(bytes(range(256)))
    values = [f"{trail}", f"{file}", "", "\udcff", "9" * 400, f"sqlite:///{file}", "no:thing"]

    assert {run([*words, option, value]) for value in values} <= EXIT_CODES.keys()
    assert "Traceback" not in capfd.readouterr().err
