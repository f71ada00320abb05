AUDIT (
  name price_not_negative,
  dialect spark
);

SELECT
  *
FROM @this_model
WHERE
  price < 0
