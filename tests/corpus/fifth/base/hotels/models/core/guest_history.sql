MODEL (
  name core.guest_history,
  kind SCD_TYPE_2_BY_TIME (
    unique_key guest_id,
    updated_at_name updated_at
  ),
  grain (guest_id, valid_from),
  audits (
    NOT_NULL(columns := (guest_id))
  )
);

SELECT
  g.guest_id,
  g.country,
  g.level,
  g.updated_at
FROM stg.guests AS g
