MODEL (
  name core.receivables,
  kind FULL,
  description 'Visits that are not paid in full.',
  grain visit_id,
  audits (UNIQUE_VALUES(columns := (visit_id)), NOT_NULL(columns := (visit_id, open_amount)))
);

WITH billed AS (
  SELECT
    l.visit_id,
    l.clinic_id,
    MIN(l.visited_on) AS visited_on,
    SUM(l.net_amount + l.vat_amount) AS gross_amount
  FROM core.visit_lines AS l
  GROUP BY
    l.visit_id,
    l.clinic_id
), paid AS (
  SELECT
    p.visit_id,
    SUM(p.amount) AS paid_amount
  FROM pms.payments AS p
  GROUP BY
    p.visit_id
)
SELECT
  b.visit_id,
  b.clinic_id,
  b.visited_on,
  b.gross_amount,
  COALESCE(p.paid_amount, 0) AS paid_amount,
  b.gross_amount - COALESCE(p.paid_amount, 0) AS open_amount
FROM billed AS b
LEFT JOIN paid AS p
  ON b.visit_id = p.visit_id
WHERE
  b.gross_amount > COALESCE(p.paid_amount, 0)
