AUDIT (
  name no_negative_days,
  defaults (least = 0)
);

SELECT * FROM @this_model WHERE days_open < @least
