"""Draw the screen of ``mnemoscope spend`` after the demo's surge: make spend-picture."""

import re
import tempfile
import time
from pathlib import Path

from rich.console import Console

from mnemoscope.adapters.cli.spend import period_of, read_spend
from mnemoscope.adapters.cli.spend_screen import spend_screen
from mnemoscope.demo import DemoOptions, run_demo

PICTURE = Path(__file__).with_name("images") / "spend.svg"

with tempfile.TemporaryDirectory() as folder:
    out = Path(folder, "demo")
    screen = Console(record=True, width=400, force_terminal=True, force_interactive=False)
    code = run_demo(DemoOptions(surge="draft", out=out), screen)
    # The command that the demo ends with has the time of its surge.
    since = re.search(r"mnemoscope spend --since (\S+)", screen.export_text())
    assert since is not None  # noqa: S101 - a script: a demo that changed is seen here
    period = period_of(since[1], None, time.time_ns() // 1_000)
    lines, parts = read_spend(("feature", "node"), period, None, f"sqlite:///{out}/audit.db")
    console = Console(record=True, width=84, force_terminal=True, force_interactive=False)
    console.print(spend_screen(lines, parts))

drawn = console.export_svg(title="mnemoscope spend --by feature,node --since …")
# Rich makes the viewer download a font; a local one is enough.
PICTURE.write_text(re.sub(r"\s*@font-face \{.*?\}", "", drawn, flags=re.DOTALL))
raise SystemExit(code)
