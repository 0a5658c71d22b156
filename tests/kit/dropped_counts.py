"""The counts of tokens that an integration of LangChain drops before its callbacks see them."""

from __future__ import annotations

from importlib.metadata import version

from packaging.version import Version

_SINCE = {
    "langchain_anthropic": ("reasoning_tokens", "1.5"),
    "langchain_aws": ("reasoning_tokens", "1.9"),
    "langchain_groq": ("cache_write_tokens", None),
    "langchain_openai": ("cache_write_tokens", "1.4"),
}
"""The count that each drops, and the version from which on it is handed on; None: not yet."""


def dropped_count(integration: str) -> str | None:
    """Return the name of the count that the installed version of *integration* drops."""
    name, since = _SINCE[integration]
    has_it = since is not None and Version(version(integration)) >= Version(since)
    return None if has_it else name
