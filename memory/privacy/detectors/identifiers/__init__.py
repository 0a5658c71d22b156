"""Identifiers that arithmetic gives away: a row of a table for each kind, found without a model."""
