"""Chroma's collections."""
