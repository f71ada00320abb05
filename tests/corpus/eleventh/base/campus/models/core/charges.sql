MODEL (
  name core.charges,
  kind FULL,
  grain charge_id,
  audits (
    NOT_NULL(columns := (charge_id, student_id)),
    UNIQUE_VALUES(columns := (charge_id)),
    paid_within_amount
  )
);

SELECT
  c.charge_id,
  c.student_id,
  c.kind,
  c.amount,
  COALESCE(c.paid, 0) AS paid,
  c.amount - COALESCE(c.paid, 0) AS open,
  c.charged_on,
  COALESCE(c.due_on, ADD_MONTHS(c.charged_on, 2)) AS due_on
FROM fin.charges AS c
