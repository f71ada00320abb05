MODEL (
  name mart.countries,
  kind FULL,
  grain country,
  audits (
    NOT_NULL(columns := (country)),
    UNIQUE_VALUES(columns := (country))
  )
);

WITH buyers AS (
  SELECT DISTINCT
    c.country,
    c.customer_id
  FROM stg.customers AS c
  INNER JOIN stg.orders AS o
    ON c.customer_id = o.customer_id
  WHERE
    o.amount > 0
), totals AS (
  SELECT DISTINCT
    b.country,
    COUNT(*) AS customers
  FROM buyers AS b
  GROUP BY
    b.country
)
SELECT
  t.country,
  t.customers
FROM totals AS t
WHERE
  NOT t.country IS NULL
