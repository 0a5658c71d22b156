"""Budgets: limits of spend on model calls, and the spend so far."""
