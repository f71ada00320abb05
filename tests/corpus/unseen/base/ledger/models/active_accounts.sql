MODEL (
  name gl.active_accounts,
  kind VIEW,
  grain account_no
);

SELECT
  a.account_no,
  a.account_name,
  a.account_type,
  a.branch
FROM gl.accounts AS a
WHERE
  a.closed_on IS NULL
  AND EXISTS(
    SELECT
      1
    FROM gl.postings AS p
    WHERE
      p.account_no = a.account_no
  )
