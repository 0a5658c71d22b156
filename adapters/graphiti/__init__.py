"""Knowledge graphs of graphiti-core. Its import reads `.env`: the adapter waits for the user's."""

import sys
from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name == "ADAPTER" and "graphiti_core" in sys.modules:
        return import_module(".adapter", __name__).ADAPTER
    kind = ImportError if name == "ADAPTER" else AttributeError
    raise kind(f"{name}: no graph is in use", name="graphiti_core")
