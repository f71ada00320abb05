AUDIT (
  name plan_known,
  dialect spark
);

SELECT
  plan
FROM @this_model
WHERE
  plan IS NULL OR NOT plan IN ('basic', 'flat', 'kids')
