AUDIT (
  name no_expired_stock,
  dialect spark,
  standalone TRUE,
  cron '@daily'
);

SELECT
  r.unit_id
FROM core.releasable AS r
WHERE
  r.expires_on < CAST(@execution_ds AS DATE)
