"""
Build what this folder ships: the dashboards, the rules, and Grafana's own copy of the rules.

    python grafana/build_all.py                 write them beside this script
    python grafana/build_all.py --check          say which are stale, and end with 1 if any is
    python grafana/build_all.py --catalogue DIR  write the dashboards for Grafana's catalogue there

`--runbooks` says where your people read docs/runbooks.md, for the links in alerts and dashboards.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from mnemoscope.alerting.runbooks import FILE, STACK

HERE = Path(__file__).parent


def _stale(folder: Path, wanted: Mapping[str, str]) -> list[str]:
    there = {path: folder / path for path in wanted}
    return [
        path
        for path, file in there.items()
        if not file.is_file() or file.read_text() != wanted[path]
    ]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Build the dashboards and rules.")
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if any is stale")
    parser.add_argument("--catalogue", type=Path, help="folder for the catalogue's form alone")
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write to")
    parser.add_argument("--runbooks", default=STACK, help="address of docs/runbooks.md")
    parser.add_argument("--speed", type=int, default=1, help="divide all durations of the rules")
    return parser.parse_args()


def main() -> int:
    """Write or check the files; return the exit code."""
    options = _options()
    try:
        from contents import catalogue, files
    except ImportError as missing:
        print(
            f"{missing.name} is not installed: run `pip install --group grafana`, or use the files "
            "beside this script as they are",
            file=sys.stderr,
        )
        return 2
    out = options.catalogue or options.out
    if options.catalogue:
        wanted = dict(catalogue(FILE if options.runbooks == STACK else options.runbooks))
    else:
        wanted = dict(files(options.runbooks, options.speed))
    stale = _stale(out, wanted)
    if options.check:
        for path in stale:
            print(f"{path} is stale: run python grafana/build_all.py", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        target = out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(wanted[path])
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
