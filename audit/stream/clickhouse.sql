-- A copy of the sealed log in ClickHouse, and what dashboards read of it.
-- What proves the copy is in origin, seq, header and leaf. The columns of an event that have a default
-- are read off its header as it is inserted.
-- A row that is sent twice is there once: FINAL hides the other one until a merge removes it.

CREATE TABLE IF NOT EXISTS audit_event (
  origin LowCardinality(String),            -- the log's name
  seq UInt64 CODEC(Delta, ZSTD(1)),
  run LowCardinality(String) CODEC(ZSTD(1)),  -- keyed hash of the run, or the writer
  header String CODEC(ZSTD(3)),             -- canonical JSON, as it was sealed
  leaf FixedString(32) CODEC(NONE),         -- SHA-256(0x00 || header)
  kind LowCardinality(String) DEFAULT $sealed.kind,
  operation LowCardinality(String) DEFAULT $sealed.operation,
  op_class LowCardinality(String) DEFAULT $sealed.op_class,
  store LowCardinality(String) DEFAULT $sealed.store,
  method LowCardinality(String) DEFAULT $sealed.method,
  status LowCardinality(String) DEFAULT $sealed.status,
  nested Bool DEFAULT $sealed.nested,
  occurred_at DateTime64(6, 'UTC') DEFAULT fromUnixTimestamp64Micro($sealed.occurred_at, 'UTC') CODEC(Delta, ZSTD(1)),
  recorded_at DateTime64(6, 'UTC') DEFAULT fromUnixTimestamp64Micro($sealed.recorded_at, 'UTC') CODEC(Delta, ZSTD(1)),
  duration_us Int64 DEFAULT $sealed.duration_us CODEC(T64, ZSTD(1)),
  tenant LowCardinality(Nullable(String)) DEFAULT $sealed.tenant,  -- keyed hash
  agent LowCardinality(Nullable(String)) DEFAULT $sealed.agent,
  feature LowCardinality(Nullable(String)) DEFAULT $sealed.feature,
  purpose LowCardinality(Nullable(String)) DEFAULT $sealed.purpose,
  hits Nullable(Int64) DEFAULT $sealed.hits CODEC(T64, ZSTD(1)),
  top_score Nullable(Float64) DEFAULT toFloat64OrNull($sealed.top_score) CODEC(ZSTD(1)),
  size_bytes Nullable(Int64) DEFAULT $sealed.size_bytes CODEC(T64, ZSTD(1)),
  model LowCardinality(Nullable(String)) DEFAULT $sealed.usage.model,
  node LowCardinality(Nullable(String)) DEFAULT $sealed.usage.node,
  input_tokens Nullable(Int64) DEFAULT $sealed.usage.input_tokens CODEC(T64, ZSTD(1)),
  output_tokens Nullable(Int64) DEFAULT $sealed.usage.output_tokens CODEC(T64, ZSTD(1)),
  cached_tokens Nullable(Int64) DEFAULT $sealed.usage.cached_tokens CODEC(T64, ZSTD(1)),
  reasoning_tokens Nullable(Int64) DEFAULT $sealed.usage.reasoning_tokens CODEC(T64, ZSTD(1)),
  cost_usd Nullable(Float64) DEFAULT toFloat64OrNull($sealed.usage.cost_usd) CODEC(ZSTD(1)),
  -- Encrypted details, where the stream is told to send them. They go when they go from the log.
  detail_subject String TTL toDateTime(least(intDiv(detail_expires_us, 1000000), 4294967295)),        -- random
  detail_key String TTL toDateTime(least(intDiv(detail_expires_us, 1000000), 4294967295)),
  detail String CODEC(NONE) TTL toDateTime(least(intDiv(detail_expires_us, 1000000), 4294967295)),    -- nonce || AES-256-GCM
  detail_expires_us Int64 DEFAULT toInt64(4611686018427387904),
  INDEX by_recorded recorded_at TYPE minmax,
  INDEX by_occurred occurred_at TYPE minmax
) ENGINE = ReplacingMergeTree PARTITION BY toYYYYMM(recorded_at) ORDER BY (origin, seq);

CREATE TABLE IF NOT EXISTS audit_checkpoint (
  origin LowCardinality(String),
  size UInt64,                              -- events that it covers
  proof String,                             -- C2SP tlog-proof of the last of them, with the signed note
  leaf FixedString(32)                      -- of the last of them
) ENGINE = ReplacingMergeTree ORDER BY (origin, size);

-- Sums of whole hours, by when events were recorded: the log's time goes on, so that an hour that is
-- over stays as it is. The stream makes them (clickhouse_sums.sql). The views that are named after
-- what they show add up what is not in one yet, event by event, so that they are never behind.
-- All of it can be dropped. The next stream makes it again.

CREATE TABLE IF NOT EXISTS audit_summed (
  origin LowCardinality(String),
  until DateTime('UTC'),                    -- hours before it are summed up
  live_from UInt64                          -- the first event that may be in another hour
) ENGINE = ReplacingMergeTree ORDER BY origin;

CREATE TABLE IF NOT EXISTS audit_spend_sums (
  origin LowCardinality(String), hour DateTime('UTC'), day Date,
  feature LowCardinality(Nullable(String)), node LowCardinality(Nullable(String)),
  model LowCardinality(Nullable(String)),
  calls UInt64, input_tokens Int64, output_tokens Int64, cached_tokens Int64, reasoning_tokens Int64,
  cost_usd Float64, unpriced_calls UInt64, unpriced_tokens Int64
) ENGINE = ReplacingMergeTree ORDER BY (origin, hour, day, feature, node, model)
SETTINGS allow_nullable_key = 1;

CREATE TABLE IF NOT EXISTS audit_recall_sums (
  origin LowCardinality(String), hour DateTime('UTC'), day Date, store LowCardinality(String),
  searches UInt64, empties UInt64, failures UInt64, hits Int64, scored UInt64, top_scores Float64
) ENGINE = ReplacingMergeTree ORDER BY (origin, hour, day, store);

CREATE TABLE IF NOT EXISTS audit_deviation_sums (
  origin LowCardinality(String), hour DateTime('UTC'),
  agent LowCardinality(Nullable(String)), operation LowCardinality(String),
  calls UInt64, median_us Nullable(Float64), mad_us Nullable(Float64),
  median_hits Nullable(Float64), mad_hits Nullable(Float64),
  median_bytes Nullable(Float64), mad_bytes Nullable(Float64)
) ENGINE = ReplacingMergeTree ORDER BY (origin, hour, agent, operation)
SETTINGS allow_nullable_key = 1;

CREATE OR REPLACE VIEW audit_spend_hours AS
SELECT origin, toStartOfHour(recorded_at) AS hour, toDate(occurred_at) AS day, feature, node, model,
  count() AS calls, sum(ifNull(event.input_tokens, 0)) AS input_tokens,
  sum(ifNull(event.output_tokens, 0)) AS output_tokens,
  sum(ifNull(event.cached_tokens, 0)) AS cached_tokens,
  sum(ifNull(event.reasoning_tokens, 0)) AS reasoning_tokens,
  sum(ifNull(event.cost_usd, 0)) AS cost_usd, countIf(isNull(event.cost_usd)) AS unpriced_calls,
  sumIf(ifNull(event.input_tokens, 0) + ifNull(event.output_tokens, 0), isNull(event.cost_usd))
    AS unpriced_tokens
FROM audit_event AS event FINAL
WHERE model IS NOT NULL AND status != 'rejected'
GROUP BY origin, hour, day, feature, node, model;

CREATE OR REPLACE VIEW audit_recall_hours AS
SELECT origin, toStartOfHour(recorded_at) AS hour, toDate(occurred_at) AS day, store,
  count() AS searches, countIf(status = 'empty') AS empties,
  countIf(status NOT IN ('ok', 'empty', 'partial')) AS failures,
  sum(ifNull(event.hits, 0)) AS hits, count(top_score) AS scored,
  sum(ifNull(top_score, 0)) AS top_scores
FROM audit_event AS event FINAL
WHERE op_class = 'recall' AND kind = 'operation'
GROUP BY origin, hour, day, store;

CREATE OR REPLACE VIEW audit_deviation_hours AS
WITH
  values -> if(empty(values), NULL, arrayReduce('quantileExactInclusive(0.5)', values)) AS middle_of,
  values -> arrayMap(value -> abs(value - middle_of(values)), values) AS distances_of
SELECT origin, hour, agent, operation, calls,
  middle_of(durations_us) AS median_us, middle_of(distances_of(durations_us)) AS mad_us,
  middle_of(all_hits) AS median_hits, middle_of(distances_of(all_hits)) AS mad_hits,
  middle_of(sizes_bytes) AS median_bytes, middle_of(distances_of(sizes_bytes)) AS mad_bytes
FROM (
  SELECT origin, toStartOfHour(recorded_at) AS hour, agent, operation, count() AS calls,
    groupArray(duration_us) AS durations_us, groupArray(hits) AS all_hits,
    groupArray(size_bytes) AS sizes_bytes
  FROM audit_event FINAL
  WHERE kind = 'operation' AND status NOT IN ('rejected', 'refused', 'denied')
  GROUP BY origin, hour, agent, operation
);

-- What model calls cost, by the day on which they were made.
CREATE OR REPLACE VIEW audit_spend AS
WITH (SELECT min(until) FROM audit_summed FINAL) AS first_until
SELECT origin, day, feature, node, model, sum(calls) AS calls, sum(input_tokens) AS input_tokens,
  sum(output_tokens) AS output_tokens, sum(cached_tokens) AS cached_tokens,
  sum(reasoning_tokens) AS reasoning_tokens, sum(cost_usd) AS cost_usd,
  sum(unpriced_calls) AS unpriced_calls, sum(unpriced_tokens) AS unpriced_tokens
FROM (
  SELECT *, true AS is_summed FROM audit_spend_sums FINAL UNION ALL
  SELECT *, false FROM audit_spend_hours WHERE hour >= first_until
) AS hours
JOIN (SELECT origin, until FROM audit_summed FINAL) AS summed USING origin
WHERE (hour < until) = is_summed
GROUP BY origin, day, feature, node, model;

-- What searches found, by the day on which they were made. top_scores are those of the scored ones,
-- added up.
CREATE OR REPLACE VIEW audit_recall AS
WITH (SELECT min(until) FROM audit_summed FINAL) AS first_until
SELECT origin, day, store, sum(searches) AS searches, sum(empties) AS empties,
  sum(failures) AS failures, sum(hits) AS hits, sum(scored) AS scored, sum(top_scores) AS top_scores
FROM (
  SELECT *, true AS is_summed FROM audit_recall_sums FINAL UNION ALL
  SELECT *, false FROM audit_recall_hours WHERE hour >= first_until
) AS hours
JOIN (SELECT origin, until FROM audit_summed FINAL) AS summed USING origin
WHERE (hour < until) = is_summed
GROUP BY origin, day, store;

-- What is usual of an agent's operation in the hour in which it was recorded: medians, and medians of
-- the distance from them. NULL: no call had that figure.
CREATE OR REPLACE VIEW audit_deviations AS
WITH (SELECT min(until) FROM audit_summed FINAL) AS first_until
SELECT hours.* EXCEPT is_summed
FROM (
  SELECT *, true AS is_summed FROM audit_deviation_sums FINAL UNION ALL
  SELECT *, false FROM audit_deviation_hours WHERE hour >= first_until
) AS hours
JOIN (SELECT origin, until FROM audit_summed FINAL) AS summed USING origin
WHERE (hour < until) = is_summed;
