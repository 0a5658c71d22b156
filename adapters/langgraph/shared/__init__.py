"""What checkpoints and runs have in common: the walk over a graph's state."""
