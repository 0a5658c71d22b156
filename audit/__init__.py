"""
The audit trail: what was done to whose memory, when and why. The fifth sink, the one that lasts.

`log` writes and reads it, `export` hands it out, `keys` guards who may be found in it.
"""
