"""The relay: the process that delivers the events in a folder of files (see `queue`)."""
