"""Queries on the log: history, latency, spend, provenance, memories at a moment."""
