"""The health of a scope: checks, and metrics that are read when asked."""
