MODEL (
  name stg.stock_moves,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column moved_on
  ),
  partitioned_by (moved_on),
  grain move_id,
  audits (
    UNIQUE_VALUES(columns := (move_id)),
    NOT_NULL(columns := (move_id, part_no, warehouse))
  )
);

SELECT
  CAST(m.move_id AS BIGINT) AS move_id,
  UPPER(m.part_no) AS part_no,
  m.warehouse,
  CAST(m.quantity AS DECIMAL(12, 3)) AS quantity,
  LOWER(m.uom) AS uom,
  CAST(m.moved_at AS DATE) AS moved_on
FROM erp.stock_moves AS m
WHERE
  CAST(m.moved_at AS DATE) BETWEEN @start_ds AND @end_ds
