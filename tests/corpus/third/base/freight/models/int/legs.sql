MODEL (
  name freight_int.legs,
  kind FULL
);

WITH loads AS (
  SELECT
    m.container_no,
    m.terminal,
    m.moved_at
  FROM freight_stg.moves AS m
  WHERE
    m.move_type = 'load'
), discharges AS (
  SELECT
    m.container_no,
    m.terminal,
    m.moved_at
  FROM freight_stg.moves AS m
  WHERE
    m.move_type = 'discharge'
)
SELECT
  l.container_no,
  l.terminal AS from_terminal,
  d.terminal AS to_terminal,
  l.moved_at AS left_at,
  d.moved_at AS arrived_at
FROM loads AS l
INNER JOIN discharges AS d
  ON d.container_no = l.container_no AND d.moved_at > l.moved_at
QUALIFY
  ROW_NUMBER() OVER (PARTITION BY l.container_no, l.moved_at ORDER BY d.moved_at, d.terminal) = 1
