"""The LangSmith sink."""
