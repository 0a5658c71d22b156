"""
The write journal: writes that a store did not take are kept, redacted, and made again.

`memory.journal.step` is the step of a guard that keeps them; `journal` holds them on disk,
`replay` makes them again, and an adapter declares in `writes` which calls can be kept.
"""

MAX_BYTES = 64 * 1024 * 1024
"""Default of the maximum size of a journal's file, bytes."""
