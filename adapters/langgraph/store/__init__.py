"""LangGraph's long-term store behind the guard."""
