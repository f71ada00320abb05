MODEL (
  name gl.trial_balance,
  kind FULL,
  grain (account_no, month)
);

SELECT
  ph.account_no,
  a.account_type,
  CAST(DATE_TRUNC('MONTH', ph.booked_on) AS DATE) AS month,
  SUM(CASE WHEN ph.amount_home > 0 THEN ph.amount_home ELSE 0 END) AS debit,
  SUM(CASE WHEN ph.amount_home < 0 THEN -ph.amount_home ELSE 0 END) AS credit,
  SUM(ph.amount_home) AS balance
FROM gl.postings_home AS ph
LEFT JOIN gl.accounts AS a
  ON ph.account_no = a.account_no
GROUP BY
  ph.account_no,
  a.account_type,
  CAST(DATE_TRUNC('MONTH', ph.booked_on) AS DATE)
