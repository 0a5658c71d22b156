"""
The demo's traces in a real back end: start Arize Phoenix, run the demo against it, ask its API.

Prints one trace as a tree and whether it is right: graph, node, model call and memory operation,
each below the one that made it. With ``--keep`` Phoenix goes on until it is interrupted, so that a
person can look.

    python tests/phoenix/check.py --phoenix .venv-phoenix/bin/phoenix
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from pathlib import Path
from typing import Any

STARTS_IN_S = 120
WANTED = {
    "invoke_agent": None,
    "execute_node": "invoke_agent",
    "chat": "execute_node",
    "search_memory": "execute_node",
}
"""Operation by operation, what must be above it in the tree."""


def free_port() -> int:
    """Return a port of the loopback interface that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(phoenix: Path, folder: Path, port: int) -> subprocess.Popen[bytes]:
    """Start Phoenix with all its files in *folder*; the log is there too."""
    given = {
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    log = (folder / "phoenix.log").open("wb")
    return subprocess.Popen(
        [str(phoenix), "serve"], env=os.environ | given, stdout=log, stderr=subprocess.STDOUT
    )


def asked(url: str) -> Any:
    """Return what Phoenix's API answers."""
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - our own loopback server
        return json.load(answer)


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until Phoenix answers, or say why it does not."""
    until = time.monotonic() + STARTS_IN_S
    while time.monotonic() < until:
        if process.poll() is not None:
            raise SystemExit(f"Phoenix ended with {process.returncode}: see phoenix.log")
        try:
            asked(f"{url}/v1/projects")
        except OSError:
            time.sleep(0.5)
        else:
            return
    raise SystemExit(f"Phoenix did not answer within {STARTS_IN_S} s")


def run_demo(url: str) -> None:
    """Run the demo with its spans going to Phoenix."""
    given = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": url,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "NO_PROXY": "127.0.0.1",
    }
    command = [str(Path(sys.executable).with_name("mnemoscope")), "demo", "--json"]
    subprocess.run(
        command, env=os.environ | given, check=True, stdout=subprocess.DEVNULL, timeout=300
    )


def spans_of(url: str) -> list[dict[str, Any]]:
    """Return every span that Phoenix holds."""
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = asked(f"{url}/v1/projects/default/spans?limit=1000{cursor}")
        found += page["data"]
        if not page.get("next_cursor"):
            return found
        cursor = f"&cursor={page['next_cursor']}"


def settled(url: str) -> list[dict[str, Any]]:
    """Return the spans once no more come: Phoenix takes them in as it finds time."""
    before, spans = -1, spans_of(url)
    while len(spans) != before:
        time.sleep(3)
        before, spans = len(spans), spans_of(url)
    return spans


def operation_of(span: dict[str, Any]) -> str:
    """Return the GenAI operation of a span; its name where it has none."""
    return str(span.get("attributes", {}).get("gen_ai.operation.name", span["name"].split()[0]))


def ancestors(span: dict[str, Any], by_id: dict[str, dict[str, Any]]) -> list[str]:
    """Return the operations above *span*, the nearest first."""
    above: list[str] = []
    while (span := by_id.get(span.get("parent_id") or "", {})) and len(above) < len(by_id):
        above.append(operation_of(span))
    return above


def wrong(spans: list[dict[str, Any]]) -> list[str]:
    """Return what is not right about the trees, a sentence each."""
    by_id = {span["context"]["span_id"]: span for span in spans}
    faults: list[str] = []
    for operation, parent in WANTED.items():
        these = [span for span in spans if operation_of(span) == operation]
        if not these:
            faults.append(f"there is no span of {operation}")
        elif parent and not any(parent in ancestors(span, by_id) for span in these):
            faults.append(f"no {operation} is below a {parent}")
    return faults


def tree(spans: list[dict[str, Any]]) -> str:
    """Draw the trace that has most spans."""
    traces: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for span in spans:
        traces[span["context"]["trace_id"]].append(span)
    largest = max(traces.values(), key=len)
    below: defaultdict[str | None, list[dict[str, Any]]] = defaultdict(list)
    ids = {span["context"]["span_id"] for span in largest}
    for span in sorted(largest, key=lambda each: each["start_time"]):
        parent = span.get("parent_id")
        below[parent if parent in ids else None].append(span)

    def lines(parent: str | None, depth: int) -> list[str]:
        return [
            line
            for span in below[parent]
            for line in ("  " * depth + span["name"], *lines(span["context"]["span_id"], depth + 1))
        ]

    return "\n".join(lines(None, 0))


def main() -> int:
    """Run from the command line; 0 if the trees are right."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--phoenix", type=Path, required=True, help="Phoenix's own command")
    parser.add_argument("--keep", action="store_true", help="let Phoenix run until interrupted")
    given = parser.parse_args()
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as name:
        process = start(given.phoenix, Path(name), port)
        try:
            wait_for(url, process)
            run_demo(url)
            spans = settled(url)
            sys.stdout.write(f"{len(spans)} spans in Phoenix; the largest trace:\n{tree(spans)}\n")
            faults = wrong(spans)
            sys.stdout.write("\n".join(faults or ["the trace trees are right"]) + "\n")
            if given.keep:
                sys.stdout.write(f"look at {url}, interrupt to end\n")
                process.wait()
        except KeyboardInterrupt:
            return 0
        finally:
            process.terminate()
            process.wait(timeout=30)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
