MODEL (
  name shop.customers,
  kind INCREMENTAL_BY_UNIQUE_KEY (
    unique_key customer_id
  ),
  table_format iceberg,
  grain customer_id,
  audits (
    NOT_NULL(columns := (customer_id)),
    UNIQUE_VALUES(columns := (customer_id))
  )
);

SELECT
  CAST(c.customer_id AS BIGINT) AS customer_id,
  MAX_BY(c.name, c.changed_at) AS name,
  MAX_BY(c.segment, c.changed_at) AS segment,
  MAX(c.changed_at) AS changed_at
FROM src.customers AS c
WHERE
  c.changed_at BETWEEN @start_ts AND @end_ts
GROUP BY
  CAST(c.customer_id AS BIGINT)
