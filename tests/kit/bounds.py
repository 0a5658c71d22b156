"""
Print the lower bound of each requirement of ours as a pin, a constraint for installers.

What is installed beside us, a test's library for example, may ask for newer versions: with these
pins it cannot raise one of ours unseen.

    python -m tests.kit.bounds
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def pins() -> list[str]:
    """Return ``name==version``, with the requirement's own marker: the highest bound of each."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras = (each for extra in project["optional-dependencies"].values() for each in extra)
    found: dict[str, str] = {}
    for each in (*project["dependencies"], *extras):
        if not each.startswith(f"{project['name']}["):
            pin = re.sub(r"(\[[^\]]*\])?>=", "==", each, count=1)
            name = pin.partition("==")[0]
            # A requirement with a marker is one of its own: numpy's bound is another on 3.13.
            name += pin.partition(";")[2]
            found[name] = max(found.get(name, pin), pin, key=_numbers)
    return sorted(found.values())


def _numbers(pin: str) -> list[int]:
    version = pin.partition("==")[2].partition(";")[0]
    return [int(each) for each in re.findall(r"\d+", version)]


if __name__ == "__main__":
    sys.stdout.write("\n".join([*pins(), ""]))
