MODEL (
  name mart.peers,
  kind FULL,
  cron '@daily',
  grain (turbine, day)
);

SELECT
  r.turbine,
  r.day,
  r.mwh,
  (
    SELECT
      COUNT(*)
    FROM core.stops AS s
    WHERE
      s.turbine = r.turbine AND CAST(s.began_at AS DATE) = r.day
  ) AS stops,
  r.mwh - AVG(r.mwh) OVER (PARTITION BY r.site, r.day) AS above_site,
  NTILE(4) OVER (PARTITION BY r.day ORDER BY r.mwh DESC, r.turbine) AS quarter,
  FIRST_VALUE(r.turbine) OVER (PARTITION BY r.site, r.day ORDER BY r.mwh DESC, r.turbine) AS best
FROM mart.revenue_days AS r
