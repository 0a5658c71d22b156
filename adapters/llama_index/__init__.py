"""LlamaIndex's memories, memory blocks and chat stores."""
