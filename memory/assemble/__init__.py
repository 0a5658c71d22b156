"""Prompts put together from guarded stores, block by block, within a budget of tokens."""
