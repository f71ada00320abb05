MODEL (
  name bill.open_invoices,
  kind VIEW,
  grain invoice_id
);

SELECT
  t.invoice_id,
  t.account_id,
  a.company_name,
  t.gross_amount,
  t.currency
FROM bill.invoice_totals AS t
LEFT JOIN bill.accounts AS a
  ON t.account_id = a.account_id
WHERE
  t.status = 'open'
