MODEL (
  name hist.memberships,
  kind SCD_TYPE_2_BY_TIME (
    unique_key member_no,
    updated_at_name updated_at,
    time_data_type TIMESTAMP
  ),
  table_format iceberg,
  grain (member_no, valid_from),
  audits (
    NOT_NULL(columns := (member_no))
  )
);

SELECT
  m.member_no,
  CAST(m.visitor_id AS BIGINT) AS visitor_id,
  UPPER(m.tier) AS tier,
  CAST(m.started_on AS DATE) AS started_on,
  CAST(m.ended_on AS DATE) AS ended_on,
  CAST(m.updated_at AS TIMESTAMP) AS updated_at
FROM crm.memberships AS m
