MODEL (
  name mart.notes,
  kind FULL,
  grain ticket_id,
  audits (not_null(columns := (ticket_id)))
);

SELECT t.ticket_id, t.severity, t.note, MD5(CONCAT_WS('|', t.machine_id, t.note)) AS note_key
FROM stg.tickets AS t
WHERE t.note LIKE '%100\\%%' OR t.severity IN ('HIGH', 'CRITICAL')
