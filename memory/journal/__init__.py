"""
The write journal: writes that a store did not take are kept, redacted, and made again.

`memory.journal.step` is the step of a guard that keeps them; `journal` holds them on disk, and
`replay` makes them again. An adapter declares with `memory.api.JournalledWrites` which can be kept.
"""
