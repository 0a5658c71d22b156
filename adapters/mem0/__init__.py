"""mem0 behind the guard: open source and hosted, synchronous and asynchronous."""
