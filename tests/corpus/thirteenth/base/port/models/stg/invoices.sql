MODEL (
  name stg.invoices,
  kind SCD_TYPE_2_BY_TIME (
    unique_key invoice_id,
    updated_at_name modified_at,
    valid_from_name known_from,
    valid_to_name known_to,
    time_data_type TIMESTAMP
  ),
  owner finance_data,
  grain (invoice_id, known_from),
  audits (
    NOT_NULL(columns := (invoice_id))
  )
);

SELECT
  CAST(i.invoice_id AS BIGINT) AS invoice_id,
  CAST(i.call_id AS BIGINT) AS call_id,
  UPPER(i.line_code) AS line_code,
  CAST(i.amount AS DECIMAL(12, 2)) AS amount,
  i.currency,
  CAST(i.issued_on AS DATE) AS issued_on,
  CAST(i.paid_on AS DATE) AS paid_on,
  CAST(i.modified_at AS TIMESTAMP) AS modified_at
FROM fin.invoices AS i
