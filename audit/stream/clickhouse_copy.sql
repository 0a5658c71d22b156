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
SELECT count() FROM audit_event WHERE $changed
