"""Origin: what is written is labelled by what its run has read, and sifted by it when recalled."""

from __future__ import annotations
