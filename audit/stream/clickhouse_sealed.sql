JSONExtract(header, 'Tuple(
  kind String, operation String, op_class String, store String, method String, status String,
  nested Bool, occurred_at Int64, recorded_at Int64, duration_us Int64, tenant Nullable(String),
  agent Nullable(String), feature Nullable(String), purpose Nullable(String), hits Nullable(Int64),
  top_score Nullable(String), size_bytes Nullable(Int64), usage Tuple(
    model Nullable(String), node Nullable(String), input_tokens Nullable(Int64),
    output_tokens Nullable(Int64), cached_tokens Nullable(Int64), reasoning_tokens Nullable(Int64),
    cost_usd Nullable(String)))')
