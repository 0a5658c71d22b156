"""
Tests with other people's frameworks, which run by `make test-doors` alone.

The frameworks exclude one another's versions, and some of ours. Each folder has requirements of
its own, and an environment of its own that is built from them: `.venv-doors/NAME`. The main
environment has none of them, so that these tests are not collected there. And what
tests/conftest.py imports is not in these environments: `--confcutdir` leaves it out.
"""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("DOOR_TESTS") else ["*"]
