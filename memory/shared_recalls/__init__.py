"""Equal recalls of one run, made once: what the run's branches ask in the same moment."""
