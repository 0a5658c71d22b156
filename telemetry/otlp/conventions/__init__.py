"""The names that OpenTelemetry, OpenInference and LangSmith give to what an event holds."""
