"""LangGraph's checkpointers behind the guard."""
