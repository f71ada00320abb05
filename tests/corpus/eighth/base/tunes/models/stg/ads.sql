MODEL (
  name stg.ads,
  kind INCREMENTAL_UNMANAGED (insert_overwrite false),
  table_format iceberg,
  owner ads,
  grain ad_id,
  audits (not_null(columns := (ad_id)))
);

SELECT a.ad_id, a.user_id, a.shown_at, a.cost, a.clicks, a.views
FROM raw.ads AS a
WHERE a.shown_at >= @start_dt AND a.shown_at < @end_dt + INTERVAL '1' SECOND
