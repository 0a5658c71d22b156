"""Spans encoded without the SDK's objects, checked against the SDK's own bytes."""
