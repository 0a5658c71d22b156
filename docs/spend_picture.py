"""Draw what ``mnemoscope spend`` says after the demo's surge: make spend-picture."""

import re
import tempfile
from pathlib import Path

from rich.console import Console

from mnemoscope.adapters.command_line.bill import SpendOptions, bill
from mnemoscope.adapters.command_line.bill_screen import show
from mnemoscope.adapters.demo import DemoOptions, run_demo

PICTURE = Path(__file__).with_name("images") / "spend.svg"

with tempfile.TemporaryDirectory() as folder:
    out = Path(folder, "demo")
    screen = Console(record=True, width=400, force_terminal=True, force_interactive=False)
    code = run_demo(DemoOptions(surge="draft", out=out), screen)
    # The demo names the moment of its surge in the command that it ends with.
    since = re.search(r"mnemoscope spend --since (\S+)", screen.export_text())
    assert since is not None  # noqa: S101 - a script: a demo that changed is seen here
    options = SpendOptions(since=since[1], by="feature,node", audit_url=f"sqlite:///{out}/audit.db")
    console = Console(record=True, width=84, force_terminal=True, force_interactive=False)
    show(bill(options), options, console)

drawn = console.export_svg(title="mnemoscope spend --by feature,node --since …")
# Rich has the viewer fetch a font; the one that is there will do.
PICTURE.write_text(re.sub(r"\s*@font-face \{.*?\}", "", drawn, flags=re.DOTALL))
raise SystemExit(code)
