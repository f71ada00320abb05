MODEL (
  name freight_stg.shipments,
  kind INCREMENTAL_BY_UNIQUE_KEY (
    unique_key shipment_no
  ),
  table_format iceberg,
  grain shipment_no,
  audits (
    UNIQUE_VALUES(columns := (shipment_no)),
    NOT_NULL(columns := (shipment_no, customer_id))
  )
);

SELECT
  s.shipment_no,
  s.customer_id,
  UPPER(TRIM(s.container_no)) AS container_no,
  s.origin,
  s.destination,
  COALESCE(s.service, 'standard') AS service,
  s.weight_kg,
  CAST(s.booked_at AS DATE) AS booked_on,
  s.eta,
  s.ata,
  s.cancelled,
  s.updated_at
FROM erp.shipments AS s
WHERE
  s.updated_at BETWEEN @start_ts AND @end_ts
QUALIFY
  ROW_NUMBER() OVER (PARTITION BY s.shipment_no ORDER BY s.updated_at DESC) = 1
