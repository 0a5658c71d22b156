"""Texts made here to measure redaction on: personal data in 24 languages, and what holds none."""
