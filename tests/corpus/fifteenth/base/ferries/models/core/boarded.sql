MODEL (
  name core.boarded,
  kind FULL,
  description 'One row a ticket that was scanned, with its first scan.',
  grain ticket_id,
  audits (
    UNIQUE_VALUES(columns := (ticket_id))
  )
);

SELECT
  s.ticket_id,
  MIN(s.scanned_at) AS boarded_at,
  MIN_BY(s.gate, s.scanned_at) AS gate
FROM stg.scans AS s
GROUP BY
  s.ticket_id
