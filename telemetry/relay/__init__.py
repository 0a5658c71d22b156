"""The relay: files that processes append their events to, and the process that delivers them."""

MAX_BYTES = 64 * 1024 * 1024
"""How large the files of one process may become together."""
