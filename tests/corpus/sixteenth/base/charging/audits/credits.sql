AUDIT (
  name credits_are_negative,
  dialect spark
);

SELECT
  *
FROM @this_model
WHERE
  kind = 'credit' AND net_amount > 0
