AUDIT (
  name paid_within_amount
);

SELECT
  *
FROM @this_model
WHERE
  paid > amount OR paid < 0
