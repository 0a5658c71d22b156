"""Labelled texts in 25 languages, made here from templates and made-up values."""

from .generator import LANGUAGES, documents

__all__ = ["LANGUAGES", "documents"]
