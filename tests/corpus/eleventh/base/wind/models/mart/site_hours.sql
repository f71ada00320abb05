MODEL (
  name mart.site_hours,
  kind VIEW,
  grain (site, local_hour)
);

SELECT
  t.site,
  FROM_UTC_TIMESTAMP(e.hour, @zone) AS local_hour,
  SUM(e.energy_kwh) AS energy_kwh,
  SUM(t.rated_kw) AS rated_kw,
  ROUND(SUM(e.energy_kwh) / SUM(t.rated_kw), 3) AS load_factor
FROM core.energy_hours AS e
INNER JOIN ref.turbines AS t
  ON e.turbine = t.turbine
GROUP BY
  t.site,
  FROM_UTC_TIMESTAMP(e.hour, @zone)
