"""
The verification of a log: everything that it claims is recomputed.

`whole` is the way in. `events` checks sealed events one after the other, `writers` that none of any
writer's is missing, `tree` the Merkle tree and every checkpoint, `details` what may be erased.
`ranges` shares the work among processes.
"""
