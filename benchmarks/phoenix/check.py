"""
The demo's traces in a real back end: start Arize Phoenix, run the demo against it, ask its API.

Each run of the agent must be one trace: no orphans, kinds everywhere, documents where something was
retrieved. Prints one as a tree, and draws it as Phoenix shows it, if there is a Chromium. With
``--keep`` Phoenix goes on until it is interrupted, so that a person can look.

    python -m benchmarks.phoenix.check --phoenix .venv-phoenix/bin/phoenix --pictures build/phoenix
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.kit.trace_trees import Span, drawn, faults_of, operation_of, traces_of

STARTS_IN_S = 120
PICTURE = Path(__file__).parents[2] / "docs/images/phoenix.png"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SIZE = (1500, 1130)
LEFT, TOP = 380, 47
"""Of that, what is Phoenix's own: its menu, and the list of traces behind the one that is open."""
SHOWN = ("invoke_agent", "search_memory", "chat")
"""Operations whose span is opened for a picture, each in one of its own."""


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
        "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
    }
    with (folder / "phoenix.log").open("wb") as log:
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


def run_demo(url: str) -> int:
    """Run the demo with its spans going to Phoenix, and return how many turns it had."""
    given = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": url,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "NO_PROXY": "127.0.0.1",
    }
    command = [str(Path(sys.executable).with_name("mnemoscope")), "demo", "--json"]
    ended = subprocess.run(
        command, env=os.environ | given, check=True, stdout=subprocess.PIPE, timeout=300
    )
    return int(json.loads(ended.stdout)["turns"])


def spans_of(url: str) -> list[Span]:
    """Return every span that Phoenix holds."""
    found: list[Span] = []
    cursor = ""
    while True:
        page = asked(f"{url}/v1/projects/default/spans?limit=1000{cursor}")
        found += page["data"]
        if not page.get("next_cursor"):
            return found
        cursor = f"&cursor={page['next_cursor']}"


def settled(url: str) -> list[Span]:
    """Return the spans once no more come: Phoenix takes them in as it finds time."""
    before, spans = -1, spans_of(url)
    while len(spans) != before:
        time.sleep(3)
        before, spans = len(spans), spans_of(url)
    return spans


def draw(browser: str, url: str, trace: Sequence[Span], folder: Path) -> None:
    """Draw *trace* as Phoenix shows it, with one span open and another."""
    from PIL import Image  # matplotlib brings it

    (project,) = (
        each["id"] for each in asked(f"{url}/v1/projects")["data"] if each["name"] == "default"
    )
    folder.mkdir(parents=True, exist_ok=True)
    for operation in SHOWN:
        opened = next(span["id"] for span in trace if operation_of(span) == operation)
        trace_id = trace[0]["context"]["trace_id"]
        page = f"{url}/projects/{project}/traces/{trace_id}?selectedSpanNodeId={opened}"
        picture = folder / f"{operation}.png"
        with tempfile.TemporaryDirectory() as profile:
            subprocess.run(
                [
                    *(browser, "--headless=new", "--no-sandbox", "--disable-gpu"),
                    *("--hide-scrollbars", f"--user-data-dir={profile}"),
                    # Nothing but our own server: a browser has much to ask of its maker.
                    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
                    *(f"--window-size={SIZE[0]},{SIZE[1]}", "--virtual-time-budget=8000"),
                    *(f"--screenshot={picture}", page),
                ],
                check=True,
                capture_output=True,
                timeout=120,
            )
        with Image.open(picture) as whole:
            cut = whole.crop((LEFT, TOP, *SIZE)).convert("RGB").quantize(48)
        cut.save(picture, optimize=True)
        sys.stdout.write(f"drawn: {picture}\n")


def main() -> int:
    """Run from the command line; 0 if the trees are right."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--phoenix", type=Path, required=True, help="Phoenix's own command")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="draw a run into it")
    parser.add_argument("--docs", action="store_true", help="renew the picture in the docs, too")
    parser.add_argument("--keep", action="store_true", help="let Phoenix run until interrupted")
    given = parser.parse_args()
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as name:
        process = start(given.phoenix, Path(name), port)
        try:
            wait_for(url, process)
            runs = run_demo(url)
            spans = settled(url)
            traces = list(traces_of(spans).values())
            sys.stdout.write(f"{len(spans)} spans in Phoenix, in {len(traces)} traces; the last:\n")
            sys.stdout.write(f"{drawn(traces[-1])}\n")
            faults = faults_of(spans, runs)
            said = [f"{runs} runs, a trace each: no orphans, a kind everywhere, documents told"]
            sys.stdout.write("\n".join(faults or said) + "\n")
            browser = next(filter(None, map(shutil.which, BROWSERS)), None)
            if given.pictures and browser:
                draw(browser, url, traces[-1], given.pictures)
                if given.docs:
                    shutil.copyfile(given.pictures / "search_memory.png", PICTURE)
            elif given.pictures:
                sys.stdout.write(f"no picture: none of {', '.join(BROWSERS)} is on the PATH\n")
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
