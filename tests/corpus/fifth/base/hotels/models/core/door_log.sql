MODEL (
  name core.door_log,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column (ds, '%Y%m%d')
  ),
  partitioned_by ds,
  grain (ds, door_id)
);

SELECT
  CAST(d.ds AS STRING) AS ds,
  CAST(d.hotel_id AS STRING) AS hotel_id,
  CAST(d.door_id AS STRING) AS door_id,
  SUM(d.opened) AS opened
FROM raw.door_log AS d
WHERE
  d.ds BETWEEN DATE_FORMAT(@start_date, 'yyyyMMdd') AND DATE_FORMAT(@end_date, 'yyyyMMdd')
GROUP BY
  d.ds,
  d.hotel_id,
  d.door_id
