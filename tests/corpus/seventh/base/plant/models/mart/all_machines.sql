MODEL (
  name mart.all_machines,
  kind VIEW,
  grain machine_id,
  audits (not_null(columns := (machine_id)))
);

SELECT * FROM core.hall_a
UNION ALL
SELECT * FROM core.hall_b
