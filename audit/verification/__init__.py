"""
Recompute everything that the log claims, and say what does not hold.

`whole` is the way in. `events` checks sealed events one after the other, `writers` that none of any
writer's is missing, `tree` the Merkle tree and every checkpoint, `details` what may be erased.
`ranges` shares the work among processes.
"""
