"""The chokepoint for MCP: contracts of tools, checked in front of every call."""
