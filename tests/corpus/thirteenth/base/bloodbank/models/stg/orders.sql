MODEL (
  name stg.orders,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column ordered_on
  ),
  partitioned_by (ordered_on),
  grain (order_id, line_no),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (order_id, line_no)),
    NOT_NULL(columns := (order_id, line_no, hospital_code))
  )
);

SELECT
  CAST(o.order_id AS BIGINT) AS order_id,
  CAST(o.line_no AS INT) AS line_no,
  o.hospital_code,
  UPPER(o.component) AS component,
  o.blood_group,
  o.units,
  CAST(o.unit_price AS DECIMAL(10, 2)) AS unit_price,
  o.currency,
  CAST(o.ordered_at AS DATE) AS ordered_on
FROM erp.orders AS o
WHERE
  CAST(o.ordered_at AS DATE) BETWEEN @start_ds AND @end_ds
  AND NOT COALESCE(o.cancelled, FALSE)
