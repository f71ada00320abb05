MODEL (
  name core.order_coupons,
  kind INCREMENTAL_BY_UNIQUE_KEY (
    unique_key (order_id, coupon_code)
  ),
  table_format iceberg,
  grain (order_id, coupon_code),
  audits (
    NOT_NULL(columns := (order_id)),
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (order_id, coupon_code))
  )
);

SELECT
  o.order_id,
  COALESCE(r.coupon_code, 'none') AS coupon_code,
  MAX(o.amount) AS amount
FROM stg.orders AS o
LEFT JOIN raw.redemptions AS r
  ON o.order_id = r.order_id
WHERE
  o.order_date BETWEEN @start_date AND @end_date
GROUP BY
  o.order_id,
  COALESCE(r.coupon_code, 'none')
