MODEL (
  name gl.accounts,
  kind FULL,
  grain account_no,
  audits (
    NOT_NULL(columns := (account_no, account_type)),
    UNIQUE_VALUES(columns := (account_no)),
    ACCEPTED_VALUES(column := account_type, is_in := ('asset', 'liability', 'income', 'expense', 'equity'))
  )
);

SELECT
  CAST(a.account_no AS STRING) AS account_no,
  CAST(a.account_name AS STRING) AS account_name,
  LOWER(a.account_type) AS account_type,
  CAST(a.branch AS STRING) AS branch,
  CAST(a.opened_on AS DATE) AS opened_on,
  CAST(a.closed_on AS DATE) AS closed_on
FROM core.accounts AS a
