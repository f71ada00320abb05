MODEL (
  name core.hall_@{hall},
  kind FULL,
  blueprints (
    (hall := a, code := 'A', min_kw := 5),
    (hall := b, code := 'B', min_kw := 10)
  ),
  grain machine_id,
  audits (not_null(columns := (machine_id)))
);

SELECT m.machine_id, m.line_no, m.power_kw
FROM ref.machines AS m
WHERE m.hall = @code AND m.power_kw >= @min_kw
