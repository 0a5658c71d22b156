"""Sessions and run hooks of the OpenAI Agents SDK."""
