"""LangGraph: its long-term store, its checkpointers, the runs of its graphs and their streams."""
