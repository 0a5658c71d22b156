"""LangGraph v3 streams without personal data."""
