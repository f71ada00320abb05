MODEL (
  name core.session_amounts,
  kind FULL,
  description 'What was charged for a session, credits taken off, in the currency of its lines; a session has one currency.',
  grain session_id,
  audits (
    UNIQUE_VALUES(columns := (session_id)),
    NOT_NULL(columns := (session_id, currency))
  )
);

SELECT
  l.session_id,
  MAX(l.currency) AS currency,
  SUM(l.net_amount) AS net_amount,
  SUM(l.gross_amount) AS gross_amount,
  SUM(CASE WHEN l.kind = 'credit' THEN l.net_amount ELSE 0 END) AS credited,
  MAX(l.booked_on) AS last_booked_on
FROM stg.lines AS l
GROUP BY
  l.session_id
