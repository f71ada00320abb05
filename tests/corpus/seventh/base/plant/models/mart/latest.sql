MODEL (
  name mart.latest,
  kind FULL,
  grain machine_id,
  audits (not_null(columns := (machine_id)), unique_values(columns := (machine_id)))
);

SELECT machine_id, value, read_at
FROM (
  SELECT
    r.machine_id,
    r.value,
    r.read_at,
    ROW_NUMBER() OVER (PARTITION BY r.machine_id ORDER BY r.read_at DESC, r.reading_id DESC) AS rn
  FROM stg.readings AS r
) AS ranked
WHERE rn = 1
