"""The OTLP sink: spans and metrics of the OpenTelemetry GenAI conventions."""
