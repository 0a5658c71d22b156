"""CrewAI's memory storages."""

import sys

if "crewai" not in sys.modules:  # then nobody has one, and the import takes seconds
    raise ImportError("crewai has not been imported", name="crewai")
