"""Matters of the whole process: forks, exit, our own errors."""
