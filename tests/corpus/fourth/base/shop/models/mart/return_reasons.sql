MODEL (
  name mart.return_reasons,
  kind FULL,
  grain (order_id, reason),
  audits (
    NOT_NULL(columns := (order_id))
  )
);

WITH late AS (
  SELECT
    o.order_id,
    reason
  FROM stg.orders AS o
  INNER JOIN raw.late_returns
    ON order_ref = o.order_id
  WHERE
    NOT reason IS NULL
)
SELECT
  l.order_id,
  l.reason,
  COUNT(*) AS late_returns
FROM late AS l
GROUP BY
  l.order_id,
  l.reason
