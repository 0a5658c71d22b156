"""LangChain's vector stores."""
