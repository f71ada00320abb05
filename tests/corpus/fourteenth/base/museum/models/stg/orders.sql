MODEL (
  name stg.orders,
  kind INCREMENTAL_BY_UNIQUE_KEY (
    unique_key order_id
  ),
  table_format iceberg,
  grain order_id,
  audits (
    UNIQUE_VALUES(columns := (order_id)),
    NOT_NULL(columns := (order_id))
  )
);

SELECT
  CAST(o.order_id AS BIGINT) AS order_id,
  CAST(o.visitor_id AS BIGINT) AS visitor_id,
  UPPER(o.channel) AS channel,
  UPPER(o.status) AS status,
  CAST(o.created_at AS TIMESTAMP) AS created_at,
  @local_day(o.created_at) AS ordered_on,
  CAST(o.updated_at AS TIMESTAMP) AS updated_at
FROM shop.orders AS o
WHERE
  o.updated_at BETWEEN @start_ts AND @end_ts
