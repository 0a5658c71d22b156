-- Which hours of a log are over and not summed up: from since until until. After a clock that was set back
-- these are hours that had been. is_all looks at the whole log, so that its last hour is open again.
-- is_over takes that hour for over. sent_from is the first event that was just stored: of a batch that was
-- broken off, the later ones may have been there, and their hours summed up.
WITH
  (SELECT (any(until), least(any(live_from), {sent_from:UInt64})) FROM audit_summed FINAL
   WHERE origin = {origin:String}) AS old,
  if({is_all:Bool}, 0, old.2) AS first,
  (SELECT toStartOfHour(max(recorded_at)) FROM audit_event WHERE origin = {origin:String} AND seq >= first)
    AS newest,
  if({is_all:Bool}, newest, greatest(old.1, newest)) + toIntervalHour({is_over:Bool}) AS open_from
SELECT
  toUnixTimestamp(
    if(countIf(seq >= old.2) = 0, open_from, least(open_from, toStartOfHour(minIf(recorded_at, seq >= old.2)))))
    AS since,
  toUnixTimestamp(open_from) AS until,
  multiIf(
    count() = 0, 0,
    countIf(recorded_at >= open_from) = 0, max(seq) + 1,
    minIf(seq, recorded_at >= open_from)) AS live_from
FROM audit_event WHERE origin = {origin:String} AND seq >= first;

-- Their sums, of each of three kinds, see clickhouse.sql. Made twice they are the same.
INSERT INTO audit_$kind_sums SELECT * FROM audit_$kind_hours
WHERE origin = {origin:String} AND hour >= fromUnixTimestamp({since:UInt32}) AND hour < fromUnixTimestamp({until:UInt32});

-- Last, so that what was interrupted is done again.
INSERT INTO audit_summed SELECT {origin:String}, fromUnixTimestamp({until:UInt32}), {live_from:UInt64};
