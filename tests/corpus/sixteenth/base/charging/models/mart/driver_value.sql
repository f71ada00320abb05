MODEL (
  name mart.driver_value,
  kind FULL,
  grain driver_id,
  audits (
    UNIQUE_VALUES(columns := (driver_id)),
    ACCEPTED_VALUES(column := segment, is_in := ('heavy', 'regular', 'rare', 'none'))
  )
);

WITH used AS (
  SELECT
    f.driver_id,
    COUNT(*) AS sessions,
    SUM(f.kwh) AS kwh,
    MIN(f.started_on) AS first_on,
    MAX(f.started_on) AS last_on
  FROM core.session_facts AS f
  WHERE
    NOT f.driver_id IS NULL
  GROUP BY
    f.driver_id
)
SELECT
  d.driver_id,
  d.country,
  d.postcode_area,
  COALESCE(u.sessions, 0) AS sessions,
  COALESCE(u.kwh, 0) AS kwh,
  CASE
    WHEN u.sessions IS NULL
    THEN 'none'
    WHEN u.kwh >= 1000
    THEN 'heavy'
    WHEN u.kwh >= 100
    THEN 'regular'
    ELSE 'rare'
  END AS segment,
  u.first_on,
  u.last_on
FROM stg.drivers AS d
LEFT JOIN used AS u
  ON d.driver_id = u.driver_id
