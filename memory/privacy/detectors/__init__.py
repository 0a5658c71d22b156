"""Detectors of personal data: one file for each family of entities, word lists in ``data/``."""
