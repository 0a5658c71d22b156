"""A durable queue of events: files that processes append to, and whoever records them reads."""

MAX_BYTES = 64 * 1024 * 1024
"""How large the files of one process may become together."""
