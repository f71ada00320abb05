MODEL (
  name core.open_invoices,
  kind VIEW,
  owner finance_data,
  grain invoice_id
);

SELECT
  i.invoice_id,
  i.line_code,
  i.amount,
  i.currency,
  i.issued_on
FROM stg.invoices AS i
WHERE
  i.known_to IS NULL AND i.paid_on IS NULL
