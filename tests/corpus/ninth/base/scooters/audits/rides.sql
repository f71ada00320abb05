AUDIT (
  name ride_is_plausible
);

SELECT *
FROM @this_model
WHERE seconds < 0
  OR meters / NULLIF(seconds, 0) * 3.6 > @max_kmh;
