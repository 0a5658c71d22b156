"""
Alert rules for Prometheus and Grafana, made from latency objectives.

Renders: needs neither Prometheus nor Grafana, and imports nothing but the standard library until an
objectives file is read.
"""
