"""Draw the picture of docs/architecture.md: ``make architecture-picture``."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

PICTURE = Path(__file__).parent / "images" / "architecture.svg"

WIDTH, HEIGHT = 960, 700
INK, SOFT, PAPER = "#1f2937", "#64748b", "#ffffff"
ADAPTERS, MEMORY, TELEMETRY, AUDIT, OUTSIDE = "#dbeafe", "#dcfce7", "#fef3c7", "#fae8ff", "#f1f5f9"

STEPS = (
    *("await audit", "report", "tenancy", "require audit", "redact"),
    *("ask rules", "sift answers", "confine answers", "late writes", "journal writes"),
    *("admit", "classify"),
)
"""The order of memory/building/steps.py; `deadline` calls the store behind the last of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """
    A rectangle with a title and lines of text.

    Attributes:
        x: Left edge, pixels; `y`, `width` and `height` likewise.
        title: First line, bold.
        lines: Further lines.
        fill: Background colour.
        is_dashed: Drawn with a dashed border: code of other packages.
    """

    x: int
    y: int
    width: int
    height: int
    title: str = ""
    lines: tuple[str, ...] = ()
    fill: str = PAPER
    is_dashed: bool = False

    def draw(self) -> str:
        """Return the box as SVG."""
        dash = ' stroke-dasharray="5 4"' if self.is_dashed else ""
        drawn = [rectangle(self, f' fill="{self.fill}" stroke="{SOFT}"{dash}')]
        if self.title:
            drawn.append(text(self.x + 14, self.y + 22, self.title, weight="bold"))
        drawn += [
            text(self.x + 14, self.y + 42 + 18 * row, line, size=13, ink=SOFT)
            for row, line in enumerate(self.lines)
        ]
        return "\n".join(drawn)


def rectangle(box: Box, style: str) -> str:
    """Return the outline of *box*."""
    place = f'x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}"'
    return f'<rect {place} rx="8"{style}/>'


def text(
    x: int, y: int, content: str, *, size: int = 15, weight: str = "normal", ink: str = INK
) -> str:
    """Return one line of text, whose baseline begins at *x*, *y*."""
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}" fill="{ink}">'
        f"{escape(content)}</text>"
    )


def note(x: int, y: int, content: str) -> str:
    """Return one line of smaller text."""
    return text(x, y, content, size=13, ink=SOFT)


def arrow(start: tuple[int, int], end: tuple[int, int], *, is_dashed: bool = False) -> str:
    """Return an arrow from *start* to *end*."""
    dash = ' stroke-dasharray="5 4"' if is_dashed else ""
    return (
        f'<line x1="{start[0]}" y1="{start[1]}" x2="{end[0]}" y2="{end[1]}" stroke="{INK}"'
        f' stroke-width="1.6"{dash} marker-end="url(#head)"/>'
    )


def steps(x: int, y: int) -> list[str]:
    """Return the steps of a guard, side by side, in three rows."""
    names = [*(f"{number} {name}" for number, name in enumerate(STEPS, 1)), "deadline"]
    return [
        drawn
        for place, name in enumerate(names)
        for drawn in step(x + 148 * (place % 4), y + 32 * (place // 4), name)
    ]


def step(x: int, y: int, name: str) -> tuple[str, str]:
    """Return one step."""
    return (
        f'<rect x="{x}" y="{y}" width="140" height="26" rx="13" fill="{PAPER}" stroke="{SOFT}"/>',
        text(x + 10, y + 18, name, size=12),
    )


def picture() -> str:
    """Return the whole picture."""
    boxes = (
        Box(
            x=20,
            y=16,
            width=920,
            height=58,
            title="your application",
            lines=("agents, graphs and tools that call their own clients, as before",),
            fill=OUTSIDE,
        ),
        Box(
            x=20,
            y=112,
            width=620,
            height=104,
            title="adapters",
            lines=(
                "mem0 · qdrant · langgraph/{store, checkpoint, runs, redacted_stream}",
                "toolkit: registry, guarded client · instrument: patches classes",
                "cli, customer_requests: export and erase for one customer",
            ),
            fill=ADAPTERS,
        ),
        Box(
            x=668,
            y=112,
            width=272,
            height=104,
            title="adapters of other packages",
            lines=("entry point", "mnemoscope.store_adapters", "implement memory/api.py"),
            is_dashed=True,
        ),
        Box(x=20, y=254, width=620, height=196, title="memory", fill=MEMORY),
        Box(
            x=668,
            y=290,
            width=272,
            height=76,
            title="the store",
            lines=("mem0, Qdrant, LangGraph, yours:", "called with redacted arguments"),
            fill=OUTSIDE,
        ),
        Box(
            x=20,
            y=500,
            width=440,
            height=86,
            title="telemetry",
            lines=(
                "event: redacted, one for each call · delivery: a queue",
                "and a thread for each sink · pricing · process · files",
            ),
            fill=TELEMETRY,
        ),
        Box(
            x=500,
            y=500,
            width=440,
            height=86,
            title="audit",
            lines=(
                "a sink that seals events in a database; queries,",
                "verification, export bundle, erasure",
            ),
            fill=AUDIT,
        ),
        Box(
            x=20,
            y=624,
            width=440,
            height=58,
            title="sinks",
            lines=("otlp · prometheus · logs · langsmith",),
            fill=TELEMETRY,
        ),
        Box(
            x=500,
            y=624,
            width=440,
            height=58,
            title="sinks of other packages",
            lines=("entry point mnemoscope.sinks",),
            is_dashed=True,
        ),
    )
    drawn = [each.draw() for each in boxes]
    drawn += [
        note(34, 296, "guard: the steps of a call in this order, and back in reverse"),
        *steps(34, 308),
        note(34, 418, "limits · journal · budgets · health · privacy · subject_data"),
        note(34, 438, "scope: the front door · settings · api: for adapters and sinks"),
        arrow((320, 74), (320, 110)),
        text(332, 98, "calls the guarded client", size=12, ink=SOFT),
        arrow((804, 74), (804, 110)),
        arrow((320, 216), (320, 252)),
        text(332, 240, "an operation: method and arguments by name", size=12, ink=SOFT),
        arrow((804, 216), (642, 270)),
        arrow((620, 381), (666, 340)),
        arrow((240, 450), (240, 498)),
        text(252, 480, "one event", size=12, ink=SOFT),
        arrow((240, 586), (240, 622)),
        arrow((500, 552), (462, 552)),
        arrow((460, 578), (510, 622)),
        arrow((720, 500), (600, 452), is_dashed=True),
        text(700, 472, "subject_data/records.py only", size=12, ink=SOFT),
    ]
    head = (
        '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8"'
        ' markerHeight="8" orient="auto">'
        f'<path d="M0 0 L10 5 L0 10 z" fill="{INK}"/></marker></defs>'
    )
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        f' width="{WIDTH}" height="{HEIGHT}" font-family="Helvetica, Arial, sans-serif">'
    )
    return "\n".join(
        (
            opening,
            "<title>The rooms of mnemoscope and the path of a call</title>",
            head,
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{PAPER}"/>',
            *drawn,
            "</svg>\n",
        )
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
