AUDIT (
  name no_overbooked_slot,
  dialect spark,
  standalone TRUE
);

SELECT
  l.visit_date,
  l.slot
FROM mart.slot_load AS l
WHERE
  l.persons > l.capacity * 1.1
