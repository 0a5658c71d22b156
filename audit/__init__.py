"""
The audit trail: what was done to whose memory, when and why. The fifth sink, the one that lasts.

`log` writes and reads it, `bundle` hands it out, `verification` checks it, `keys` guards who may be
found in it.
"""
