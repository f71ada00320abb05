MODEL (
  name stg.invoices,
  kind INCREMENTAL_BY_UNIQUE_KEY (
    unique_key invoice_id
  ),
  description 'Net amounts, credit notes negative.',
  grain invoice_id,
  audits (
    UNIQUE_VALUES(columns := (invoice_id)),
    NOT_NULL(columns := (invoice_id, client_id, issued_on, due_on))
  )
);

SELECT
  i.invoice_id,
  i.client_id,
  LOWER(i.kind) AS kind,
  CASE WHEN LOWER(i.kind) = 'credit' THEN -(i.amount - i.tax) ELSE i.amount - i.tax END AS net_amount,
  i.currency,
  i.issued_on,
  i.due_on,
  i.paid_on,
  i.updated_at
FROM fin.invoices AS i
WHERE
  i.updated_at BETWEEN @start_ts AND @end_ts
