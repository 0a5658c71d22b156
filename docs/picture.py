"""
Record the demo for the README, as a terminal shows it line by line: make picture.

The recording carries the digest of what it was made from, by which a test tells whether it is old.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from rich.console import Console

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs/images/demo.svg"
WIDTH = 92
LINE_S = 0.09
"""Seconds between two lines."""

COMMAND = "[bold green]$[/] mnemoscope demo"


def digest() -> str:
    """Return the digest of the demo's files, from which the recording is made."""
    found = hashlib.sha256()
    for path in sorted((ROOT / "examples/demo").iterdir()):
        if path.suffix in {".py", ".json"}:
            found.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:16]


def recording(console: Console) -> str:
    """Return what *console* recorded, each line of which appears after the one before."""
    drawn = console.export_svg(title="mnemoscope demo", unique_id="demo")
    # Rich makes the viewer download a font; a local one is enough.
    drawn = re.sub(r"\s*@font-face \{.*?\}", "", drawn, flags=re.DOTALL)
    lines = sorted({int(each) for each in re.findall(r"url\(#demo-line-(\d+)\)", drawn)})
    # Whoever cannot play it, or wants nothing to move, sees all of it.
    steps = "".join(
        f'[clip-path="url(#demo-line-{line})"]{{animation-delay:{place * LINE_S:.2f}s}}'
        for place, line in enumerate(lines)
    )
    style = (
        f"<!-- made from {digest()} --><style>@keyframes appear{{from{{opacity:0}}}}"
        "@media (prefers-reduced-motion:no-preference){"
        f'[clip-path^="url(#demo-line-"]{{animation:appear .01s backwards}}{steps}}}</style>'
    )
    return drawn.replace("</style>", f"</style>{style}", 1)


def main() -> int:
    """Run the demo and record it."""
    from mnemoscope.demo import DemoOptions, run_demo  # noqa: PLC0415 - a digest needs none

    console = Console(record=True, width=WIDTH, force_terminal=True, force_interactive=False)
    console.print(COMMAND)
    code = run_demo(DemoOptions(), console)
    PICTURE.write_text(recording(console), encoding="utf-8")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
