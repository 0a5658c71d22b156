"""Tests with a real broker, which run by `make test-kafka` alone: they take two minutes."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("KAFKA_TESTS") else ["test_*.py"]
