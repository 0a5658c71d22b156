"""Qdrant behind the guard: synchronous and asynchronous clients."""
