"""
Runs one agent under each tool, and writes what they showed of it into a page.

    make compare

Each tool has an environment of its own below ``build/compare``. What was seen is kept in
``benchmarks/compare/seen.json``; the page is made of that alone.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.compare.spans import figures_of, spans_in
from tests.kit.compare_page import page_of
from tests.kit.receivers import HttpReceiver

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
SEEN: Final = HERE / "seen.json"
PAGE: Final = ROOT / "docs" / "compare.md"
BUILT: Final = ROOT / "build" / "compare"
CLIENTS: Final = ("mem0ai==2.2.1", "qdrant-client==1.20.0", "langgraph==1.2.22", "langchain>=1")
EXPORTER: Final = "opentelemetry-exporter-otlp-proto-http"


TOOLS: Final[dict[str, tuple[str, ...]]] = {
    "openlit": ("openlit>=1.40",),
    "traceloop": (
        "opentelemetry-instrumentation-langchain",
        "opentelemetry-instrumentation-qdrant",
        EXPORTER,
    ),
    "openinference": ("openinference-instrumentation-langchain", EXPORTER),
    "langfuse": ("langfuse",),
    "langsmith": ("langsmith[otel]>=0.14", EXPORTER),
    "mnemoscope": (),
}
"""What is installed for each tool, beside `CLIENTS`."""

GUARDS: Final = ("langgraph-tenancy>=0.2", "agent-memory-guard>=0.3.3")
"""What is installed beside ours, to be asked the questions of ``guards.py``."""


def python_of(name: str, uv: Path, wanted: Sequence[str]) -> Path:
    """Return the Python of a tool's environment, which is built if it is not there."""
    if not wanted:
        return Path(sys.executable)
    folder = BUILT / name
    python = folder / "bin" / "python"
    if not (folder / ".built").exists():
        sys.stderr.write(f"==> building {folder} (once)\n")
        subprocess.run(
            [uv, "venv", "-q", "--clear", "--python", sys.executable, folder], check=True
        )
        install = [uv, "pip", "install", "-q", "--python", python]
        subprocess.run([*install, *wanted], check=True, cwd=ROOT)
        (folder / ".built").touch()
    return python


def asked_of_guards(python: Path) -> dict[str, Any]:
    """Return what each guard answers to the questions of ``guards.py``."""
    found: dict[str, Any] = {}
    for name in ("none", "mnemoscope", "langgraph-tenancy", "agent-memory-guard"):
        sys.stderr.write(f"==> {name}\n")
        with tempfile.TemporaryDirectory() as home:
            own = {"PATH": os.environ["PATH"], "HOME": home, "XDG_DATA_HOME": home}
            ran = subprocess.run(
                [python, "-W", "ignore", HERE / "guards.py", name],
                env=own,
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            )
        found[name] = json.loads(ran.stdout)
    return found


def seen_with(name: str, python: Path, content: str) -> dict[str, Any]:
    """Run the agent under a tool, and return what the tool showed of it."""
    receiver = HttpReceiver()
    receiver.answer = lambda handler: receiver.respond(handler, 200, content_type="text/plain")
    named = [each.partition(">")[0].partition("[")[0] for each in TOOLS[name] if each != EXPORTER]
    with tempfile.TemporaryDirectory() as home:
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.environ.get("PYTHONPATH", "") if name == "mnemoscope" else "",
            "HOME": home,
            "MEM0_DIR": home,
            "XDG_DATA_HOME": home,
            "LANGFUSE_BASE_URL": receiver.url,
            "LANGFUSE_HOST": receiver.url,
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{receiver.url}/v1/traces",
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_METRICS_EXPORTER": "none",
            "LANGSMITH_TRACING": "false",
            "LANGSMITH_API_KEY": "lsv2_nobody",
            "LANGSMITH_ENDPOINT": receiver.url,
        }
        command = [python, "-W", "ignore", HERE / "scenario.py", name, content]
        with subprocess.Popen(
            [*command, *(named or ["langgraph"])],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as run:
            assert run.stdin is not None
            assert run.stdout is not None
            for line in run.stdout:
                if line.strip() == "told":
                    break
            sent = [body for path, _, body in receiver.requests if path.endswith("/v1/traces")]
            run.stdin.write("\n")
            run.stdin.flush()
            truth = json.loads([line for line in run.stdout if line.startswith("{")][-1])
    receiver.close()
    return {"truth": truth, "figures": figures_of(spans_in(sent), truth)}


def main() -> None:
    """Run what is asked for, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uv", type=Path, default=Path("uv"))
    parser.add_argument(
        "--only", choices=[*TOOLS, "guards"], action="append", help="renew what was seen of it"
    )
    parser.add_argument("--page", action="store_true", help="only write the page anew")
    asked = parser.parse_args()
    seen = json.loads(SEEN.read_text("utf-8")) if SEEN.exists() else {"tools": {}}
    for name in [] if asked.page else asked.only or [*TOOLS, "guards"]:
        if name == "guards":
            ours = [CLIENTS[2], "--editable", ".[langgraph]", *GUARDS]
            seen["guards"] = asked_of_guards(python_of(name, asked.uv, ours))
        else:
            python = python_of(name, asked.uv, TOOLS[name] and [*CLIENTS, *TOOLS[name]])
            sys.stderr.write(f"==> {name}\n")
            seen["tools"][name] = {each: seen_with(name, python, each) for each in ("on", "off")}
        seen["python"] = platform.python_version()
        SEEN.write_text(json.dumps(seen, indent=1) + "\n", "utf-8")
    PAGE.write_text(page_of(seen), "utf-8")


if __name__ == "__main__":
    main()
