"""``mnemoscope audit``: what the agent's memory was asked and told, and when."""

from __future__ import annotations

import typer

from .audit_erase import audit_erase
from .audit_export import audit_export
from .audit_show import audit_show
from .audit_verify import audit_verify

audit = typer.Typer(
    help="What the agent's memory was asked and told, and when.", no_args_is_help=True
)

audit.command("export")(audit_export)
audit.command("verify")(audit_verify)
audit.command("show")(audit_show)
audit.command("erase")(audit_erase)
