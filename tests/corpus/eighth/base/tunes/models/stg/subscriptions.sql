MODEL (
  name stg.subscriptions,
  kind INCREMENTAL_BY_UNIQUE_KEY (
    unique_key subscription_id,
    when_matched (
      WHEN MATCHED AND source.deleted THEN DELETE
      WHEN MATCHED THEN UPDATE SET target.user_id = source.user_id, target.plan = source.plan, target.price = source.price, target.state = source.state, target.deleted = source.deleted, target.changed_at = source.changed_at
    )
  ),
  table_format iceberg,
  physical_properties (
    'format-version' = '2',
    'write.merge.mode' = 'merge-on-read',
    'write.parquet.compression-codec' = 'zstd'
  ),
  owner accounts,
  grain subscription_id,
  audits (not_null(columns := (subscription_id)), unique_values(columns := (subscription_id)))
);

SELECT s.subscription_id, s.user_id, s.plan, CAST(s.price AS DECIMAL(10, 2)) AS price, s.state, s.deleted, s.changed_at
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY subscription_id ORDER BY changed_at DESC) AS rn
  FROM raw.subscriptions
  WHERE changed_at BETWEEN @start_ts AND @end_ts
) AS s
WHERE s.rn = 1
