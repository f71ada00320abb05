MODEL (
  name shop.licences,
  kind FULL,
  grain licence_id,
  audits (
    NOT_NULL(columns := (licence_id))
  )
);

SELECT
  l.licence_id,
  l.customer_id,
  CASE
    WHEN LENGTH(CAST(l.starts_epoch AS STRING)) > 10
    THEN CAST(l.starts_epoch / 1000 AS BIGINT)
    ELSE l.starts_epoch
  END AS starts_epoch,
  CASE
    WHEN LENGTH(CAST(l.ends_epoch AS STRING)) > 10
    THEN CAST(l.ends_epoch / 1000 AS BIGINT)
    ELSE l.ends_epoch
  END AS ends_epoch
FROM src.licences AS l
