MODEL (
  name freight_int.move_steps,
  kind FULL,
  grain move_id
);

SELECT
  m.move_id,
  m.container_no,
  m.terminal,
  m.moved_at,
  LAG(m.terminal) OVER (PARTITION BY m.container_no ORDER BY m.moved_at, m.move_id) AS previous_terminal,
  LAST_VALUE(CASE WHEN m.move_type = 'load' THEN m.terminal END, TRUE) OVER (
    PARTITION BY m.container_no
    ORDER BY m.moved_at, m.move_id
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ) AS loaded_in
FROM freight_stg.moves AS m
