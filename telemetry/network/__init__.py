"""HTTP, timeouts and probes for sinks that reach over the network."""
