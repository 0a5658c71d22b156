"""The audit trail as a sink: batches, spool, backoff, heartbeat, metrics."""
