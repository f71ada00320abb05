MODEL (
  name mart.receivables,
  kind VIEW,
  description 'Open invoices with their age, as of now.',
  grain invoice_id
);

SELECT
  i.invoice_id,
  i.client_id,
  c.group_id,
  c.client_name,
  i.net_amount,
  i.currency,
  i.due_on,
  GREATEST(DATEDIFF(CURRENT_DATE, i.due_on), 0) AS days_overdue,
  DATEDIFF(CURRENT_DATE, i.due_on) > @payment_grace_days AS is_late
FROM stg.invoices AS i
INNER JOIN stg.clients AS c
  ON i.client_id = c.client_id
WHERE
  i.paid_on IS NULL
