"""LlamaIndex's memories and chat stores."""

import sys

if "llama_index.core" not in sys.modules:  # then nobody has one, and the import takes seconds
    raise ImportError("llama_index.core has not been imported", name="llama_index.core")
