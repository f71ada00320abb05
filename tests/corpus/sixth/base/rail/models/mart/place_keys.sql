MODEL (
  name mart.place_keys,
  kind FULL,
  audits (not_null(columns := (place_key)))
);

SELECT MD5(TO_JSON(STRUCT(*))) AS place_key FROM core.places
