"""The Prometheus sink and the metrics server."""
