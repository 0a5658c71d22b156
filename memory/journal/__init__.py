"""
The write journal: what a store did not take is kept, redacted, and made again.

A guard with a journal is a `journalled.JournalledGuard`; `journal` keeps the writes, `replay` makes
them again. Outside, an adapter says by `writes` which of its client's calls can be kept.
"""

MAX_BYTES = 64 * 1024 * 1024
"""How large a journal's file may become, unless a setting says so. In bytes."""
