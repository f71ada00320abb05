AUDIT (
  name litres_are_plausible
);

SELECT * FROM @this_model WHERE litres <= 0 OR temperature > 12;

AUDIT (
  name amount_is_positive,
  blocking true
);

SELECT * FROM @this_model WHERE amount <= 0;

AUDIT (
  name at_least_one_row
);

SELECT 1 AS empty WHERE (SELECT COUNT(*) FROM @this_model) = 0
