"""The relay: files that processes append their events to, and the process that delivers them."""
