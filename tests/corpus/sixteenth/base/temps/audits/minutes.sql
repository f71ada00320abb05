AUDIT (
  name minutes_of_a_day,
  dialect spark,
  defaults (
    most = 960
  )
);

SELECT
  *
FROM @this_model
WHERE
  minutes < 0 OR minutes > @most
