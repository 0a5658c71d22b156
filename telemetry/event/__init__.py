"""The event of one operation, redacted, and its parts."""
