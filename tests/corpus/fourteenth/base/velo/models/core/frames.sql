MODEL (
  name core.frames,
  kind FULL,
  grain frame_no,
  audits (
    UNIQUE_VALUES(columns := (frame_no)),
    NOT_NULL(columns := (frame_no))
  )
);

WITH touched AS (
  SELECT
    s.frame_no,
    MAX(s.wo_id) AS wo_id,
    MIN(s.scanned_at) AS started_at,
    MAX(CASE WHEN s.station = 'FINAL1' AND s.event = 'DONE' THEN s.scanned_at END) AS finished_at,
    COUNT_IF(s.event = 'SCRAP') > 0 AS scrapped
  FROM stg.scans AS s
  GROUP BY
    s.frame_no
)
SELECT
  t.frame_no,
  t.wo_id,
  w.bike_code,
  w.plant,
  t.started_at,
  t.finished_at,
  t.scrapped,
  @hours_between(t.started_at, t.finished_at) AS build_hours
FROM touched AS t
LEFT JOIN stg.work_orders AS w
  ON w.wo_id = t.wo_id
