"""Draw the demo's last screen into the picture that the README shows: make picture."""

import re
from pathlib import Path

from rich.console import Console

from mnemoscope.adapters.demo import DemoOptions, run_demo

console = Console(record=True, width=92, force_terminal=True, force_interactive=False)
code = run_demo(DemoOptions(), console)
picture = Path(__file__).with_name("images") / "demo.svg"
drawn = console.export_svg(title="mnemoscope demo")
# Rich has the viewer fetch a font; the one that is there will do.
picture.write_text(re.sub(r"\s*@font-face \{.*?\}", "", drawn, flags=re.DOTALL))
raise SystemExit(code)
