MODEL (
  name stg.senders,
  kind SCD_TYPE_2_BY_TIME (
    unique_key sender_id,
    updated_at_name changed_at,
    invalidate_hard_deletes false,
    time_data_type TIMESTAMP
  ),
  grain (sender_id, valid_from),
  audits (NOT_NULL(columns := (sender_id)))
);

SELECT
  s.sender_id,
  s.sender_name,
  SHA2(LOWER(s.contact_email), 256) AS contact_hash,
  s.tier,
  s.changed_at
FROM raw.senders AS s
