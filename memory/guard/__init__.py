"""The guard in front of each wrapped store, and its steps."""
