MODEL (
  name gl.account_history,
  kind SCD_TYPE_2_BY_COLUMN (
    unique_key account_no,
    columns [account_type, branch, closed_on],
    invalidate_hard_deletes TRUE
  ),
  grain (account_no, valid_from),
  audits (
    NOT_NULL(columns := (account_no))
  )
);

SELECT
  a.account_no,
  a.account_type,
  a.branch,
  a.closed_on
FROM gl.accounts AS a
