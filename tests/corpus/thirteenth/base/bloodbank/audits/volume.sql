AUDIT (
  name positive_volume,
  dialect spark
);

SELECT
  *
FROM @this_model
WHERE
  volume_ml <= 0 OR volume_ml > 600
