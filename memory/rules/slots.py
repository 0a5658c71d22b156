"""The rules' own places in a call."""

from __future__ import annotations

from ..guard.call import Slot
from .run_facts import RunFacts

RUN: Slot[RunFacts | None] = Slot("mnemoscope.rules.run", None)
"""The facts of the run that a call is part of, once rules were given the call."""

SPARE: Slot[tuple[str, float] | None] = Slot("mnemoscope.rules.spare", None)
"""Why a search is to find less, and what share of it, where a rule says so."""
