"""Draw the demo's last screen for the README: make picture."""

import re
from pathlib import Path

from rich.console import Console

from mnemoscope.demo import DemoOptions, run_demo

console = Console(record=True, width=92, force_terminal=True, force_interactive=False)
code = run_demo(DemoOptions(), console)
picture = Path(__file__).with_name("images") / "demo.svg"
drawn = console.export_svg(title="mnemoscope demo")
# Rich makes the viewer download a font; a local one is enough.
picture.write_text(re.sub(r"\s*@font-face \{.*?\}", "", drawn, flags=re.DOTALL))
raise SystemExit(code)
