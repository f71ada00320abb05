MODEL (
  name stg.tickets,
  kind VIEW,
  grain ticket_id,
  audits (not_null(columns := (ticket_id)))
);

SELECT
  t.ticket_id,
  t.machine_id,
  t.opened_at,
  t.closed_at,
  UPPER(t.severity) AS severity,
  @clean_text(t.note) AS note,
  SPLIT(t.path, '/')[0] AS hall_path
FROM raw.tickets AS t
