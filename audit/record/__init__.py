"""One sealed event: its header, its encrypted detail, the keys of both."""
