MODEL (
  name bill.invoices,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column issued_on,
    batch_size 30,
    lookback 3
  ),
  partitioned_by (issued_on),
  grain invoice_id,
  audits (
    NOT_NULL(columns := (invoice_id, account_id, issued_on)),
    UNIQUE_VALUES(columns := (invoice_id)),
    ACCEPTED_VALUES(column := status, is_in := ('draft', 'open', 'paid', 'void'))
  )
);

SELECT
  CAST(i.invoice_id AS STRING) AS invoice_id,
  CAST(i.account_id AS BIGINT) AS account_id,
  CAST(i.issued_at AS DATE) AS issued_on,
  CAST(i.due_on AS DATE) AS due_on,
  CAST(i.paid_at AS TIMESTAMP) AS paid_at,
  UPPER(i.currency) AS currency,
  LOWER(i.status) AS status
FROM pay.invoices AS i
WHERE
  CAST(i.issued_at AS DATE) BETWEEN @start_ds AND @end_ds
