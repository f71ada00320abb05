MODEL (
  name core.terminals,
  kind SCD_TYPE_2_BY_TIME (
    unique_key terminal_id,
    updated_at_name updated_at,
    updated_at_as_valid_from true
  ),
  grain (terminal_id, valid_from),
  audits (not_null(columns := (terminal_id)))
);

SELECT t.terminal_id, t.merchant_id, t.model, t.firmware, t.updated_at
FROM raw.terminals AS t
