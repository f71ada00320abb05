MODEL (
  name freight_int.moves_wide,
  kind FULL,
  description 'First and last time of each kind of move of a container.',
  grain container_no
);

SELECT
  m.container_no,
  MIN(CASE WHEN m.move_type = 'gate_in' THEN m.moved_at END) AS gate_in_at,
  MIN(CASE WHEN m.move_type = 'load' THEN m.moved_at END) AS loaded_at,
  MIN(CASE WHEN m.move_type = 'discharge' THEN m.moved_at END) AS discharged_at,
  MAX(CASE WHEN m.move_type = 'gate_out' THEN m.moved_at END) AS gate_out_at,
  COUNT(*) AS moves
FROM freight_stg.moves AS m
GROUP BY
  m.container_no
