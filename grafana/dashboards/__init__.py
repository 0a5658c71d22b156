"""The Grafana dashboards, as JSON."""
