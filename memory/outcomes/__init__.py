"""What becomes of the results of runs: outcomes, canonical labels, progress."""
