"""
Draw the demo's screen for the README, as a terminal shows it: make picture.

It is cut to what answers the three questions; a line of dots stands for what is left out. The
picture carries the digest of what it was made from, by which a test tells whether it is old.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs/images/demo.svg"
WIDTH = 92
COMMAND = Text.assemble(("$", "bold green"), " mnemoscope demo")
LEFT_OUT = Text(" ⋮", style="dim")


def digest() -> str:
    """Return the digest of the demo's files, from which the picture is made."""
    found = hashlib.sha256()
    for path in sorted((ROOT / "examples/demo").iterdir()):
        if path.suffix in {".py", ".json"}:
            found.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:16]


def cut(screen: Sequence[Text]) -> Iterator[Text]:
    """Yield the head, the last message with its answer, and what each question comes to."""
    said = [line.plain.strip() for line in screen]
    rules = [place for place, each in enumerate(said) if re.match(r"\w.* ─+$", each)]
    numbered = [place for place in rules if re.match("[123] ", said[place])]
    asked = max(place for place, each in enumerate(said) if each.startswith("asked"))
    yield from screen[: rules[0]]
    yield from screen[asked : numbered[0]]
    for start, end in zip(numbered, [*numbered[1:], rules[-1]], strict=True):
        answer = next(place for place in range(start, end) if said[place].startswith("→"))
        yield from (screen[start], LEFT_OUT, *screen[answer:end])


def picture(screen: Sequence[Text]) -> str:
    """Return *screen* as a drawing, cut to what is shown."""
    console = Console(record=True, width=WIDTH, force_terminal=True, file=io.StringIO())
    console.print(COMMAND)
    for line, after in pairwise((*cut(screen), Text())):
        if line.plain.strip() or after.plain.strip():  # one empty line is enough
            console.print(line)
    drawn = console.export_svg(title="mnemoscope demo", unique_id="demo")
    # Rich makes the viewer download a font; a local one is enough.
    drawn = re.sub(r"\s*@font-face \{.*?\}", "", drawn, flags=re.DOTALL)
    return drawn.replace("<style>", f"<!-- made from {digest()} --><style>", 1)


def main() -> int:
    """Run the demo and draw its screen."""
    from mnemoscope.demo import DemoOptions, run_demo  # noqa: PLC0415 - a digest needs none

    screen = io.StringIO()
    console = Console(width=WIDTH, force_terminal=True, force_interactive=False, file=screen)
    code = run_demo(DemoOptions(), console)
    lines = [Text.from_ansi(line) for line in screen.getvalue().splitlines()]
    PICTURE.write_text(picture(lines), encoding="utf-8")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
