MODEL (
  name core.wagons,
  kind SCD_TYPE_2_BY_TIME (unique_key wagon_id, updated_at_name changed_at, disable_restatement true),
  grain wagon_id,
  audits (not_null(columns := (wagon_id)))
);

SELECT w.wagon_id, w.kind, w.owner, w.tare_kg, w.changed_at FROM ops.wagons AS w
