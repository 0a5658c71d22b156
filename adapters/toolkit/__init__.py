"""Toolkit of the adapters: the drop-in proxy, the registry, calls of sync and async clients."""
