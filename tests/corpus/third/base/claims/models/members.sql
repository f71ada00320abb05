MODEL (
  name claims.members,
  kind SCD_TYPE_2_BY_COLUMN (
    unique_key member_no,
    columns [plan, postcode_area]
  ),
  grain (member_no, valid_from)
);

SELECT
  m.member_no,
  FLOOR(MONTHS_BETWEEN(CAST('2024-01-01' AS DATE), m.birth_date) / 12) AS age,
  LEFT(m.postcode, 2) AS postcode_area,
  m.plan
FROM core.members AS m
