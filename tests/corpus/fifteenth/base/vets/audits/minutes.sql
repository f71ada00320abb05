AUDIT (
  name minutes_plausible,
  dialect spark,
  defaults (most = 480)
);

SELECT
  *
FROM @this_model
WHERE
  minutes < 0 OR minutes > @most
