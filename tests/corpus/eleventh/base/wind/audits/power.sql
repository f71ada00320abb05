AUDIT (
  name power_in_range,
  defaults (
    most = 4500
  )
);

SELECT
  *
FROM @this_model
WHERE
  power_kw < 0 OR power_kw > @most
