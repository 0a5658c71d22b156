"""
Measures what mnemoscope costs, beside the bare client and beside others.

    python -m benchmarks.cost [--rounds N] [--calls N] [--out FOLDER] [--no-peers]

It writes docs/cost_figures.md, and the table of docs/cost.md. All five sinks are real up to the
socket: OTLP and LangSmith are sent to a process of our own that takes everything. Peers are
installed in an environment of their own, never in ours; where that cannot be done they are left
out, and it is said. Calls come in bursts, after each of which the sinks get the time they need; a
row says what a call adds for its caller, and what other threads did for it.
"""

from __future__ import annotations

import argparse
import logging
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from math import nan
from pathlib import Path
from statistics import fmean, median

from benchmarks import audit_trail, cases, graphs, peers, rounds, scale, start, stores, turns
from benchmarks.reasons import reasons
from benchmarks.tables import HEADER, Goal, Section, figure, row_of, say, show
from mnemoscope.telemetry.delivery.drain import _EVENT_BYTES
from tests.kit.postgres import Postgres

ROOT = Path(__file__).parents[1]
PEERS_ENV = ROOT / ".venv-peers"
UV = ROOT / ".venv-uv" / "bin" / "uv"
PEERS = ("openlit", "loongsuite", "traceloop")
RIVALS = ("openlit", "loongsuite")
GRAPH_PEERS = ("openlit", "traceloop", "openinference")
PEER_PACKAGES = (
    "loongsuite-instrumentation-mem0",
    "mem0ai",
    "openinference-instrumentation-langchain",
    "openlit",
    "opentelemetry-exporter-otlp-proto-http",
    "opentelemetry-instrumentation-langchain",
    "opentelemetry-instrumentation-qdrant",
    "opentelemetry-sdk",
    "qdrant-client",
    # The bare graph that they are measured beside is one of our environment.
    "langchain",  # mem0 takes its embeddings
    f"langchain-core=={version('langchain-core')}",
    f"langgraph=={version('langgraph')}",
)
VERSIONS = (
    "mnemoscope",
    "mem0ai",
    "qdrant-client",
    "langchain-core",
    "langgraph",
    "opentelemetry-sdk",
    "prometheus-client",
    "loguru",
    "langsmith",
)


ENGINES = {"SQLite": 40_000, "PostgreSQL": 25_000}
"""Events a second that each should append."""

SHOWN = frozenset(
    {
        "Qdrant in memory, `query_points`, 64 dimensions",
        "Qdrant in memory, `upsert`, 64 dimensions",
        "LangGraph store, get",
        "LangGraph store, put",
        f"LangGraph {stores.SQLITE}, get_tuple",
        f"LangGraph {stores.SQLITE}, put",
        "LangGraph `graph.invoke`, a node that reads the store, with a saver",
        "mem0 with wordllama, `search`",
        "mem0 with wordllama, `add` without a model",
    }
)
"""Tables of which docs/cost.md has a line."""

ELSEWHERE = (
    "Resident memory over millions of operations is what `make soak` is for ([how a guard "
    "fails](failing.md)), the quality of redaction, and its speed with a language model, `make "
    "bench-privacy` ([privacy](privacy_figures.md)), an audit log of ten million events `make "
    "bench-audit`, 20,000 calls a second for a minute `make sustained`, kills `make relay-kills` "
    "and an exit with everything dead `make bench-relay` ([relay](relay.md))."
)
"""What the goals leave to others."""


class Bench:
    """
    One run: what was seen so far.

    Args:
        scopes: Makes the scopes that are measured.
        folder: For the files of stores.
        number: Rounds.
        calls: Calls of a case in one round.
    """

    def __init__(self, scopes: cases.Scopes, folder: Path, number: int, calls: int) -> None:
        self.sections: list[Section] = []
        self._seen = dict[str, dict[str, rounds.Figures]]()
        self._folder = folder
        self._scopes = scopes
        self._rounds = number
        self._calls = calls
        self._span_us = 0.0

    def all(self) -> Iterator[Goal]:
        """Measure everything; yield the figures that have a goal."""
        yield from self.memory()
        yield from self.beside_others()
        yield from self.qdrant()
        yield from self.stores()
        yield from self.redaction()
        yield from self.graphs()
        yield from self.audit()
        yield from self.much()
        yield from self.start()

    def memory(self) -> Iterator[Goal]:
        """Measure calls with nothing in them: all that is left is what we add."""
        # Each round, and the one that does not count, sees texts that it has not seen before.
        texts = self._calls * (self._rounds + 1)
        search = self.table(
            "mem0, `search` with an empty body", cases.mem0_search(self._scopes, texts)
        )
        self.table("Qdrant `query_points` with an empty body", cases.qdrant_query(self._scopes))
        self.table("mem0, `add` with an empty body", cases.mem0_add(self._scopes, texts))
        self._span_us = search[cases.SPAN].median_us
        yield from self._caller("no sink", search, cases.NO_SINK, (1.0, 1.2, 4))
        yield from self._caller("five sinks, default settings", search, cases.OURS, (1.5, 2, 6))

    def _caller(
        self,
        how: str,
        seen: Mapping[str, rounds.Figures],
        name: str,
        wanted: tuple[float, float, float],
    ) -> Iterator[Goal]:
        """Yield what a mem0 search costs its caller, in spans of OpenTelemetry."""
        ours, bare = seen[name], seen[cases.BARE]
        added_us = (ours.above_us(bare), ours.mean_us - bare.mean_us, ours.p99_us - bare.median_us)
        for what, goal, each in zip(("median", "mean", "p99"), wanted, added_us, strict=True):
            yield Goal(f"caller, {how}, {what}", goal, each / self._span_us, "spans")

    def beside_others(self) -> Iterator[Goal]:
        """Measure others on the same calls, in turns with ours in default settings."""
        pythons = {peers.OURS: Path(sys.executable)}
        pythons |= dict.fromkeys(("bare", *PEERS), PEERS_ENV / "bin" / "python")
        asked = {name: f"{case} {self._calls}" for name, case in peers.CASES.items()}
        seen = turns.measured(pythons, "benchmarks.peers", asked, self._rounds)
        for case in peers.CASES:
            added = {
                way: _added(each, seen["bare"], case)
                for way, each in seen.items()
                if way != "bare" and case in each.rounds and case in seen["bare"].rounds
            }
            about = (
                "Microseconds that a call costs above the bare one, which is in a process of its "
                "own too. Ours has five sinks and a deadline, others one sink and no metrics."
            )
            rows = [
                [f"{way} {seen[way].version}", *map(figure, each.values())]
                for way, each in added.items()
            ]
            self.keep(Section(f"Beside others: {case}", about, ("", *_ADDED), rows))
            yield from _beside_goals(case, added)

    def qdrant(self) -> Iterator[Goal]:
        """Measure calls with vectors of two sizes."""
        added: list[float] = []
        for dims in (64, 1_536):
            for title, found in stores.qdrant(self._scopes, dims).items():
                # Few enough that they have ended before the sinks begin, however slow they are.
                seen = self.table(title, found, calls=max(2, self._calls // 4))
                if "query_points" in title:
                    added.append(seen[cases.AT_ONCE].cpu_above_us(seen[cases.BARE]))
        what = "query of 1,536 dimensions: caller's CPU added ÷ that of 64"
        yield Goal(what, 1.25, added[1] / added[0], "")

    def stores(self) -> Iterator[Goal]:
        """Measure LangGraph's stores and graphs, a vector store, and a real mem0."""
        fast = stores.langgraph_store(self._scopes)
        fast |= stores.langgraph_savers(self._scopes, self._folder)
        fast |= stores.vector_store(self._scopes)
        fast |= stores.chroma(self._scopes)
        fast |= stores.redis(self._scopes)
        seen = {title: self.table(title, found) for title, found in fast.items()}
        get = seen["LangGraph store, get"]
        added_us = get[cases.OURS].above_us(get[cases.BARE])
        what = "guarded in-process store (InMemoryStore get), median"
        yield Goal(what, 1.2, added_us / self._span_us, "spans")
        for name in ("put", "get_tuple"):
            saver = seen[f"LangGraph {stores.SQLITE}, {name}"]
            added_us = saver[cases.OURS].mean_us - saver[cases.BARE].mean_us
            yield Goal(f"{stores.SQLITE} {name}, mean", 3, added_us / self._span_us, "spans")
        few = max(2, self._calls // 20)
        for title, found in stores.graph(self._scopes).items():
            runs = self.table(title, found, calls=few)
            ours, bare = runs[cases.OURS], runs[cases.BARE]
            ratio = ours.median_us / bare.median_us
            yield Goal("graph.invoke with store and saver, wall ÷ bare", 1.25, ratio, "")
            ratio = ours.cpu_us / bare.cpu_us
            yield Goal("graph.invoke with store and saver, CPU ÷ bare", 1.5, ratio, "")
        for title, found in stores.mem0(self._scopes, self._folder).items():
            self.table(title, found, calls=few)
        server = Postgres(Path(tempfile.mkdtemp(prefix="pg-")))
        try:
            for title, found in stores.vector_table(self._scopes, server.new_database()).items():
                self.table(title, found, calls=few)
        finally:
            server.close()
        for title, found in stores.knowledge_graph(self._scopes).items():
            self.table(title, found, calls=few)

    def redaction(self) -> Iterator[Goal]:
        """Measure the redactor alone."""
        texts = self._calls * (self._rounds + 1)
        seen = self.table("Redaction of one text, patterns only", cases.redaction(texts))
        yield Goal("redaction, clean, 100 characters", 20, seen[cases.SHORT].median_us, "µs")
        yield Goal("redaction, clean, 1,000 characters", 100, seen[cases.LONG].median_us, "µs")
        what = "redaction, new text with personal data, 100 characters"
        yield Goal(what, 150, seen[cases.PERSONAL].median_us, "µs")

    def graphs(self) -> Iterator[Goal]:
        """Measure whole graphs, each way of watching them in a process of its own."""
        pythons = dict.fromkeys(graphs.NAMES, Path(sys.executable))
        pythons |= dict.fromkeys(GRAPH_PEERS, PEERS_ENV / "bin" / "python")
        seen = graphs.measured(pythons, self._rounds)
        for section in graphs.sections(seen):
            self.keep(section)
        yield from graphs.goals(seen)

    def audit(self) -> Iterator[Goal]:
        """Measure the audit table alone."""
        events = cases.recalls(20_000)
        with (
            tempfile.TemporaryDirectory() as folder,
            audit_trail.engines(Path(folder), (*ENGINES,)) as found,
        ):
            for name, (url, *_others) in found.items():
                appended, verified = cases.audit_rates(url, events)
                what = f"audit append, {name}, durable batches of 64"
                yield Goal(what, ENGINES[name], appended, "events/s", at_least=True)
                if name == "SQLite":
                    what = "audit verify, headers alone"
                    yield Goal(what, 200_000, verified, "events/s", at_least=True)

    def much(self) -> Iterator[Goal]:
        """Measure with many threads, tasks, customers and events."""
        calls = self._calls * 16
        in_batches_us, in_trickle_us = scale.sinks_cpu_us(self._scopes, calls)
        yield Goal("CPU of all sinks together, an event, in batches", 60, in_batches_us, "µs")
        yield Goal("CPU of all sinks together, an event, in a trickle", 150, in_trickle_us, "µs")
        crowds = [*scale.threads(self._scopes, calls), scale.tasks(self._scopes, calls)]
        yield Goal("1,000 tasks of 1,000 customers at once, a call", 60, crowds[-1][1], "µs")
        rows = [[name, figure(wall), figure(cpu)] for name, wall, cpu in crowds]
        self.keep(
            Section(
                "Many callers at once: mem0 `search` with an empty body, all five sinks",
                "Microseconds for one call. That is wall time of all together, divided by the "
                "calls, and "
                "CPU time on all threads, the sinks' included.",
                ("", "wall", "CPU"),
                rows,
            )
        )
        rows = [
            [name, *map(figure, taken)] for name, taken in scale.variety(self._scopes, calls // 4)
        ]
        self.keep(
            Section(
                "Much of one thing, all five sinks",
                "Microseconds of the caller's CPU for one call, by how many of it take turns. Of "
                "100,000 every one is new; caches hold a few hundred.",
                ("", "10", "1,000", "100,000"),
                rows,
            )
        )
        a_queued, peak = scale.queued_alone()
        what = f"bytes that one queued event takes, of {_EVENT_BYTES:,} counted for it"
        yield Goal(what, _EVENT_BYTES, a_queued, "B")
        yield Goal("queues of five hung sinks in a burst of 100,000 events", 16, peak, "MiB")

    def start(self) -> Iterator[Goal]:
        """Measure importing and configuring, each in a process of its own."""
        seen = scale.start_up(str(self._folder), 7)
        rows = [[name, *map(figure, taken)] for name, taken in seen.items()]
        header = ("", "import mnemoscope.memory", "configure()")
        self.keep(
            Section("Start-up", "Milliseconds, the fastest of seven processes.", header, rows)
        )
        self.keep(start.section(15))
        imported, configured = next(iter(seen.values()))
        yield Goal("import mnemoscope.memory", 50, imported, "ms")
        yield Goal("configure(), four sinks, without NER", 150, configured, "ms")
        left = scale.exit_s(str(self._folder))
        yield Goal("exit, while OTLP and LangSmith accept and never answer", 2, left, "s")

    def table(
        self, title: str, found: Sequence[rounds.Case], *, calls: int = 0
    ) -> dict[str, rounds.Figures]:
        """Measure *found*, keep the table and show it."""
        seen = rounds.side_by_side(found, rounds=self._rounds, calls=calls or self._calls)
        bare = seen.get(cases.BARE)
        rows = [row_of(name, each, bare) for name, each in seen.items()]
        self.keep(Section(title, "Microseconds for one call.", HEADER, rows))
        self._seen[title] = seen
        return seen

    def figures(self) -> Section:
        """Return what whoever uses a real store pays for it, a line each."""
        about = (
            f"Microseconds of one call in default settings with five sinks, {time.strftime('%F')}, "
            f"{os.cpu_count()} cores, Python {platform.python_version()}."
        )
        rows = [
            [title, *map(figure, (bare.median_us, ours.median_us, ours.mean_us, ours.p99_us))]
            for title, seen in self._seen.items()
            if title in SHOWN
            for bare, ours in [(seen[cases.BARE], seen[cases.OURS])]
        ]
        header = ("", "bare, median", "guarded, median", "mean", "p99")
        return Section("Figures", about, header, rows)

    def keep(self, section: Section) -> None:
        """Add *section*, and show it."""
        self.sections.append(section)
        show(section)


_ADDED = ("median", "mean", "p99", "blocked", "caller's CPU", "other threads' CPU")


def _added(seen: turns.Seen, bare: turns.Seen, case: str) -> dict[str, float]:
    """Return what calls of *seen* cost above *bare*, by what is measured, in microseconds."""
    ours, theirs = (_singles(each, case) for each in (seen, bare))
    spent = (seen.added_us(case, bare, each) for each in ("blocked_us", "here_us"))
    figures = (
        seen.added_us(case, bare, "median_us"),
        fmean(ours) - fmean(theirs),
        ours[int(len(ours) * 0.99)] - median(theirs),
        *spent,
        seen.us(case, "elsewhere_us"),
    )
    return dict(zip(_ADDED, figures, strict=True))


def _singles(seen: turns.Seen, case: str) -> list[float]:
    return sorted(single for each in seen.rounds[case] for single in each["singles_us"])


def _beside_goals(case: str, added: Mapping[str, Mapping[str, float]]) -> Iterator[Goal]:
    """Yield what ours adds, in shares of what the best of openlit and loongsuite adds."""
    rivals = [added[each] for each in RIVALS if each in added]
    if not rivals or peers.OURS not in added:
        return
    for what, goal in (("median", 1.0), ("mean", 1.0), ("p99", 1.5)):
        theirs = min(each[what] for each in rivals)
        # What costs nothing by the clock was not measured.
        share = added[peers.OURS][what] / theirs if theirs > 0 else nan
        yield Goal(f"{case}: {what} added ÷ theirs with one sink", goal, share, "")


def install_peers() -> str | None:
    """Build the environment of the peers, once; return why it cannot be done."""
    python, installed = PEERS_ENV / "bin" / "python", PEERS_ENV / ".installed"
    wanted = "\n".join(PEER_PACKAGES)
    if installed.exists() and installed.read_text(encoding="utf-8") == wanted:
        return None
    commands = (
        [sys.executable, "-m", "venv", str(PEERS_ENV)],
        # pip tries the versions of so many packages for a quarter of an hour.
        [str(UV), "pip", "install", "--quiet", "--python", str(python), *PEER_PACKAGES],
    )
    for command in commands:
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode:
            return f"not installed: {command[2]} failed"
    installed.write_text(wanted, encoding="utf-8")
    return None


@contextmanager
def back_end() -> Iterator[None]:
    """Point OTLP and LangSmith at a process that takes everything."""
    command = [sys.executable, "-m", "benchmarks.back_end"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = f"http://127.0.0.1:{process.stdout.readline().strip()}"
        os.environ |= {
            "OTEL_EXPORTER_OTLP_ENDPOINT": url,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "LANGSMITH_ENDPOINT": url,
            "LANGSMITH_API_KEY": "bench",
        }
        try:
            yield
        finally:
            process.kill()


def about(args: argparse.Namespace) -> str:
    """Return what was measured with what, and where."""
    packages = ", ".join(f"{name} {version(name)}" for name in VERSIONS)
    method = (
        f'`make bench ARGS="--rounds {args.rounds} --calls {args.calls}"`, '
        f"{time.strftime('%Y-%m-%d')}, in {args.rounds} rounds of {args.calls} calls of each case "
        "(fewer of what is slow), interleaved, the order reversed every other round, garbage "
        "collection off inside a round. Figures are medians of rounds. The 99th percentile is of "
        "all single "
        "calls. *Added* is the median of what each round took above the bare round beside it. CPU "
        "times are per call, and hold on a busy machine too."
    )
    machine = (
        f"{_processor()}, {os.cpu_count()} cores, {platform.system()}, Python "
        f"{platform.python_version()}, load {os.getloadavg()[0]:.1f} at the end"
    )
    return f"# What it costs, in figures\n\n{method}\n\nMachine: {machine}. {packages}."


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="folder of both pages")
    parser.add_argument("--no-peers", action="store_true", help="do not install or measure others")
    return parser.parse_args(arguments)


def environment(folder: Path) -> Mapping[str, str]:
    """Return what keeps mem0 from calling home and from writing outside of *folder*."""
    return {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder)}


def main() -> None:
    """Measure, print and write."""
    args = parsed()
    missing = "left out" if args.no_peers else install_peers()
    if missing:
        say(f"others: {missing}")
    with tempfile.TemporaryDirectory() as folder, back_end():
        os.environ |= environment(Path(folder))
        logging.getLogger("mem0").setLevel(logging.WARNING)  # for the bare one, too
        scopes = cases.Scopes(Path(folder))
        bench = Bench(scopes, Path(folder), args.rounds, args.calls)
        goals = list(bench.all())
        scopes.close()
    header = ("", "goal", "figure", "")
    summary = Section("Goals", "", header, [each.row() for each in goals])
    show(summary)
    sections = [each.markdown() for each in bench.sections]
    pages = [about(args), summary.markdown(), reasons(goals), ELSEWHERE, *sections]
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "cost_figures.md").write_text("\n\n".join(pages) + "\n", encoding="utf-8")
    page = args.out / "cost.md"
    if page.exists():
        text = with_figures(page.read_text(encoding="utf-8"), bench.figures())
        page.write_text(text, encoding="utf-8")


def with_figures(page: str, figures: Section) -> str:
    """Return *page* with its section of that title replaced."""
    before, heading, rest = page.partition(f"## {figures.title}\n")
    if not heading:
        raise ValueError(f"the page has no section {figures.title!r}")
    _old, following, after = rest.partition("\n## ")
    return f"{before}{figures.markdown()}\n{following}{after}"


if __name__ == "__main__":
    main()
