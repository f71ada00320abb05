MODEL (
  name core.stock,
  kind FULL,
  grain (part_no, warehouse),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (part_no, warehouse)),
    NOT_NULL(columns := (part_no, warehouse))
  )
);

SELECT
  m.part_no,
  m.warehouse,
  MAX(m.uom) AS uom,
  SUM(m.quantity) AS on_hand
FROM stg.stock_moves AS m
GROUP BY
  m.part_no,
  m.warehouse
