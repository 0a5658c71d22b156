"""Integrity: what is read is compared with what was written, here, and last."""
