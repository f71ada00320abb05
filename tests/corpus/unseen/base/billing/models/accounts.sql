MODEL (
  name bill.accounts,
  kind INCREMENTAL_BY_UNIQUE_KEY (
    unique_key account_id
  ),
  grain account_id,
  audits (
    NOT_NULL(columns := (account_id, plan_code)),
    UNIQUE_VALUES(columns := (account_id))
  )
);

WITH latest AS (
  SELECT
    a.account_id,
    a.company_name,
    a.country,
    a.plan_code,
    a.seats,
    a.status,
    a.updated_at,
    ROW_NUMBER() OVER (PARTITION BY a.account_id ORDER BY a.updated_at DESC) AS rn
  FROM crm.accounts AS a
  WHERE
    a.updated_at BETWEEN @start_ts AND @end_ts
)
SELECT
  CAST(account_id AS BIGINT) AS account_id,
  CAST(company_name AS STRING) AS company_name,
  UPPER(country) AS country,
  LOWER(plan_code) AS plan_code,
  CAST(seats AS INT) AS seats,
  CAST(status AS STRING) AS status,
  CAST(updated_at AS TIMESTAMP) AS updated_at
FROM latest
WHERE
  rn = 1
