AUDIT (
  name amount_not_negative
);

SELECT
  *
FROM @this_model
WHERE
  amount < 0
