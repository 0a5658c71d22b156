"""A feature of another package: what the built-in ones can do, by public names alone."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from textwrap import dedent

import pytest

from tests.kit.own_process import run_code
from tests.kit.patience import GIVE_UP_S, UNHURRIED

PACKAGE = '''
"""Curated memory: what was not written by a curator is labelled, and left out of answers."""

from typing import Annotated

import typer

from mnemoscope.memory import Check, Facts, Fails, Outcome, Point, State, Verdict
from mnemoscope.memory.api import (
    Call,
    EventPart,
    Faces,
    Feature,
    FeatureContext,
    GuardParts,
    MemoryLabel,
    Method,
    ObservedRun,
    Record,
    RunObserver,
    Sample,
    SeesAnswers,
    Slot,
    WitnessesActions,
)

CURATOR = Slot("acme.curated.is_curator", False)


class Curation(EventPart, tag="acme.curation", frozen=True):
    by: str
    level: int

    def fields(self):
        return {"curated_by": self.by}

    def attributes(self):
        return {"acme.curated_by": self.by, "acme.level": self.level}

    def measurements(self):
        return {"level": self.level}

    def sealed(self):
        return {"level": self.level}

    def detail(self):
        return {"by": self.by}


class NoForeignWrites(WitnessesActions, SeesAnswers):
    name, points = "no-foreign-writes", frozenset({Point.MEMORY})
    fails, shadow = Fails.CLOSED, False

    def settings(self):
        return {"least": 1}

    def witness(self, asked):
        return {"acme.agent": asked.scope.agent == "intruder"}

    def seen(self, action):
        return {"acme.seen": action.store}

    def decide(self, facts: Facts) -> Verdict:
        if facts.known["acme.agent"]:
            return Verdict(Outcome.REFUSE, "intruder", {"seen": facts.known["acme.seen"]})
        return Verdict()


class Curated:
    def __init__(self):
        self.curated: set[str] = set()
        self.left_out = 0

    def faces(self, method: Method) -> Faces:
        return Faces(before=self.note, after=self.see)

    def note(self, call: Call) -> None:
        CURATOR.put(call, call.scope.agent == "curator")
        if call.method.written is not None:
            call.additions += (self.label, self.say)

    def label(self, store: str, call: Call) -> MemoryLabel:
        origin, trust = ("person", 3) if CURATOR.of(call) else ("unknown", 0)
        return MemoryLabel(origin, trust, ("t" * 16,))

    def say(self, store: str, call: Call) -> EventPart:
        return Curation(str(call.scope.agent), 3 if CURATOR.of(call) else 0)

    def see(self, call: Call) -> None:
        if call.error is not None:
            return
        if call.method.written is not None and CURATOR.of(call):
            written = call.method.written(call.result, call.arguments)
            self.curated |= {each.memory_id for each in written}
        if call.method.sift is not None:
            call.answer(call.method.sift(call.result, call.arguments, self.keeps))

    def keeps(self, record: Record) -> bool:
        is_kept = record.memory_id in self.curated
        self.left_out += not is_kept
        return is_kept


class Ends(RunObserver):
    def __init__(self):
        self.kinds = []

    def ended(self, run: ObservedRun) -> None:
        self.kinds.append(run.kind)


def check(ends: Ends) -> Check:
    return Check(name="acme.curated", state=State.OK, detail=" ".join(ends.kinds))


def make(context: FeatureContext) -> Feature:
    assert len(context.digest_key("acme")) == 32
    step, ends = Curated(), Ends()
    return Feature(
        rules=[NoForeignWrites()],
        observers=[ends],
        steps=[lambda parts: (step,) if parts.store == "langgraph.store" else ()],
        checks={"acme.curated": lambda: check(ends)},
        samples=lambda: [Sample(name="acme_left_out_total", value=step.left_out, kind="counter")],
    )


def command(count: Annotated[int, typer.Option(help="How many.")] = 1) -> None:
    """Count what is curated."""
    typer.echo("curated " * count)
'''

APPLICATION = """
import json, os
from pathlib import Path
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore
from prometheus_client import REGISTRY, generate_latest
from mnemoscope.memory import RefusedError, configure, context
from mnemoscope.memory.api import MemoryLabel
from mnemoscope.memory.testing import CapturingSink
from mnemoscope.telemetry.event.verdict_event import VerdictEvent
from mnemoscope.telemetry.langsmith.runs import runs_of
from mnemoscope.telemetry.otlp.conventions.attributes import span_attributes

inner, sink = InMemoryStore(), CapturingSink()
log = Path(os.environ["XDG_DATA_HOME"], "acme.log")
scope = configure(
    sinks="audit,prometheus,logs",
    log_file=log,
    features="curated",
    pii_model="none",
    extra_sinks=[sink],
)
store = scope.store(inner)
said = {}
with context(run="r-1"), context(tenant="acme", customer="c-1", agent="curator"):
    store.put(("notes",), "good", {"text": "checked"})
with context(tenant="acme", customer="c-1", agent="scraper"):
    store.put(("notes",), "bad", {"text": "found somewhere"})
    said["found"] = [each.key for each in store.search(("notes",))]
with context(tenant="acme", customer="c-1", agent="intruder", run="r-1"):
    try:
        store.put(("notes",), "worse", {"text": "nothing good"})
    except RefusedError:
        said["refused"] = True
builder = StateGraph(dict)
builder.add_node("work", lambda state: state)
builder.add_edge(START, "work")
scope.runnable(builder.compile()).invoke({})
scope.flush(60)
verdicts = [each.part(VerdictEvent) for each in sink.events]
said["verdicts"] = [dict(each.evidence) for each in verdicts if each is not None]
labels = [each.part(MemoryLabel) for each in sink.events]
said["labels"] = [each.origin for each in labels if each is not None]
said["hits"] = [each.hits for each in sink.events if each.operation == "search_memory"]
said["kept"] = sorted(each.key for each in inner.search(("notes",)))
said["check"] = [each.detail for each in scope.health(300).checks if each.name == "acme.curated"]
said["metric"] = "acme_left_out_total 1.0" in generate_latest(REGISTRY).decode()
said["summed"] = (
    'event_part_total{measurement="level",part="acme.curation"} 3.0'
    in generate_latest(REGISTRY).decode()
)
scope.close()
written = [each for each in sink.events if each.method == "put"][:2]
spans = map(span_attributes, written)
runs = [each["extra"]["metadata"] for each in runs_of(written, "p", content=False)]
lines = map(json.loads, log.read_text().splitlines())
said["spans"] = [(each["acme.curated_by"], each["acme.level"]) for each in spans]
said["runs"] = [each["curated_by"] for each in runs]
said["lines"] = [each["curated_by"] for each in lines if "curated_by" in each]
print(json.dumps(said))
"""


@pytest.fixture
def installed(tmp_path):
    """Return the environment of a process in which the package is installed."""
    site = tmp_path / "site"
    info = site / "acme_curated-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "acme_curated.py").write_text(PACKAGE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-curated\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        dedent(
            """
            [mnemoscope.features]
            curated = acme_curated:make
            broken = acme_curated:nowhere
            wrong = acme_curated:Curated.keeps

            [mnemoscope.commands]
            curated = acme_curated:command
            """
        )
    )
    return {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(site),
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "MNEMOSCOPE_AUDIT_PSEUDONYM_KEY": "ab" * 32,
        **UNHURRIED,
    }


def run_command(environment, *arguments):
    """Run the command line in a process of its own."""
    code = "import sys; from mnemoscope.adapters.cli.root import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=GIVE_UP_S,
        check=False,
    )


def test_it_has_no_private_import():
    """What stands in the package is what any package can write."""
    modules = {
        node.module for node in ast.walk(ast.parse(PACKAGE)) if isinstance(node, ast.ImportFrom)
    }

    assert {each for each in modules if each.startswith("mnemoscope")} == {
        "mnemoscope.memory",
        "mnemoscope.memory.api",
    }


def test_it_labels_sifts_refuses_observes_checks_and_counts(installed):
    """One name in a setting is all that the application writes; each sink shows its part."""
    said = json.loads(run_code(APPLICATION, installed).stdout)

    assert said == {
        "found": ["good"],
        "refused": True,
        "verdicts": [{"seen": "langgraph.store"}],
        "labels": ["person", "unknown"],
        "hits": [1],
        "kept": ["bad", "good"],
        "check": ["node graph"],
        "metric": True,
        "summed": True,
        "spans": [["curator", 3], ["scraper", 0]],
        "runs": ["curator", "scraper"],
        "lines": ["curator", "scraper"],
    }


def test_what_it_decides_is_sealed(installed):
    """The trail has the facts of each verdict, makes the decision again, and verifies."""
    run_code(APPLICATION, installed)
    rows = json.loads(run_command(installed, "audit", "show", "--json").stdout)
    verified = run_command(installed, "audit", "verify")

    text = json.dumps(rows)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert "no-foreign-writes" in text
    assert "intruder" in text
    assert next(each["parts"] for each in rows if each["method"] == "put") == {
        "acme.curation": {"by": "curator"}
    }


def test_a_command_of_it_is_one_of_mnemoscope(installed):
    """With its own help, and in the list of what other packages add."""
    ran = run_command(installed, "curated", "--count", "2")
    helped = run_command(installed, "curated", "--help")
    listed = run_command(installed, "commands")

    assert (ran.returncode, ran.stdout.split()) == (0, ["curated", "curated"])
    assert "How many." in helped.stdout
    assert listed.stdout == "curated  of acme-curated\n"


@pytest.mark.parametrize(
    ("names", "expected"),
    [("nobody", "is no installed feature"), ("broken", "broken"), ("wrong", "wrong")],
)
def test_what_cannot_be_made_is_one_line(installed, names, expected):
    """The name of a feature that is not there is not quoted: it may be a secret."""
    code = f"""
from mnemoscope.memory import ConfigurationError, configure
try:
    configure(sinks="", features={names!r}, pii_model="none")
except ConfigurationError as exc:
    print(exc)
"""
    line = run_code(code, installed).stdout

    assert line.startswith("MNEMOSCOPE_FEATURES: ")
    assert line.count("\n") == 1
    assert expected in line


def test_without_its_name_nothing_of_it_is_imported(installed):
    """Being installed is not being wanted."""
    code = """
import sys
from mnemoscope.memory import configure
configure(sinks="", pii_model="none")
print("acme_curated" in sys.modules)
"""

    assert run_code(code, installed).stdout == "False\n"
