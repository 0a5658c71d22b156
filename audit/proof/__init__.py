"""The proofs that the log was not changed: Merkle tree and signed notes."""
