-- What a stream and a reader ask. First, the number to go on from: what a batch that was interrupted left
-- out is among the newest events, since the one before it had been acknowledged. The first of all may have
-- left out its beginning: as long as there is no more than a batch, a copy is sent from the log's own.
SELECT if(any(start) > 0 AND max(seq) < any(start) + {batch:UInt64}, 0, minIf(seq, next != seq + 1) + 1) AS at FROM (
  SELECT seq, leadInFrame(seq) OVER (ORDER BY seq ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS next,
    (SELECT min(seq) FROM audit_event WHERE origin = {origin:String}) AS start
  FROM audit_event FINAL
  WHERE origin = {origin:String}
    AND seq + 100000 >= (SELECT max(seq) FROM audit_event WHERE origin = {origin:String})
) HAVING count() > 0;

-- Without FINAL: all rows are to be seen, also those that a merge will remove.
SELECT origin, 'checkpoint' AS kind, size AS seq, origin AS run, proof AS header, leaf, '' AS uid
FROM audit_checkpoint;

SELECT origin, 'event' AS kind, seq, run, header, leaf, detail_subject, detail_key, detail, detail_expires_us
FROM audit_event ORDER BY origin, seq;

-- The first event that a TTL has left. It is the user's own: this library sets none for events.
SELECT min(seq) FROM audit_event WHERE (
  SELECT any(engine_full) LIKE '% TTL %' FROM system.tables
  WHERE database = currentDatabase() AND name = 'audit_event');

-- Events of which a column is not what the header says: what dashboards read is to be what is proved.
SELECT count() FROM audit_event WHERE
  kind IS DISTINCT FROM $sealed.kind
  OR operation IS DISTINCT FROM $sealed.operation
  OR op_class IS DISTINCT FROM $sealed.op_class
  OR store IS DISTINCT FROM $sealed.store
  OR method IS DISTINCT FROM $sealed.method
  OR status IS DISTINCT FROM $sealed.status
  OR nested IS DISTINCT FROM $sealed.nested
  OR duration_us IS DISTINCT FROM $sealed.duration_us
  OR tenant IS DISTINCT FROM $sealed.tenant
  OR agent IS DISTINCT FROM $sealed.agent
  OR feature IS DISTINCT FROM $sealed.feature
  OR purpose IS DISTINCT FROM $sealed.purpose
  OR hits IS DISTINCT FROM $sealed.hits
  OR size_bytes IS DISTINCT FROM $sealed.size_bytes
  OR model IS DISTINCT FROM $sealed.usage.model
  OR node IS DISTINCT FROM $sealed.usage.node
  OR input_tokens IS DISTINCT FROM $sealed.usage.input_tokens
  OR output_tokens IS DISTINCT FROM $sealed.usage.output_tokens
  OR cached_tokens IS DISTINCT FROM $sealed.usage.cached_tokens
  OR reasoning_tokens IS DISTINCT FROM $sealed.usage.reasoning_tokens
  OR occurred_at IS DISTINCT FROM fromUnixTimestamp64Micro($sealed.occurred_at, 'UTC')
  OR recorded_at IS DISTINCT FROM fromUnixTimestamp64Micro($sealed.recorded_at, 'UTC')
  OR top_score IS DISTINCT FROM toFloat64OrNull($sealed.top_score)
  OR cost_usd IS DISTINCT FROM toFloat64OrNull($sealed.usage.cost_usd)
