MODEL (
  name core.downtime,
  kind FULL,
  grain ticket_id,
  audits (not_null(columns := (ticket_id)), unique_values(columns := (ticket_id)), no_negative_days)
);

WITH closed AS (
  SELECT t.ticket_id, t.machine_id, t.opened_at, t.closed_at, t.severity
  FROM stg.tickets AS t
  WHERE t.closed_at IS NOT NULL
)
SELECT
  c.ticket_id,
  c.machine_id,
  c.severity,
  CAST(c.opened_at AS DATE) AS opened_on,
  DATEDIFF(c.closed_at, c.opened_at) AS days_open,
  DATE_FORMAT(c.opened_at, 'yyyy-MM') AS month,
  LAG(c.closed_at) OVER (PARTITION BY c.machine_id ORDER BY c.opened_at, c.ticket_id) AS previous_end
FROM closed AS c
