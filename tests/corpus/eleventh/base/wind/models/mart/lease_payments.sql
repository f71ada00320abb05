MODEL (
  name mart.lease_payments,
  kind FULL,
  cron '@daily',
  grain (parcel, year),
  audits (
    NOT_NULL(columns := (parcel, year))
  )
);

WITH yearly AS (
  SELECT
    r.turbine,
    YEAR(r.day) AS year,
    SUM(r.mwh) AS mwh,
    SUM(r.revenue) AS revenue
  FROM mart.revenue_days AS r
  GROUP BY
    r.turbine,
    YEAR(r.day)
)
SELECT
  l.parcel,
  y.year,
  SUM(y.revenue * l.share * @rate_or_zero(t.rate)) AS payment,
  COUNT(DISTINCT y.turbine) AS turbines
FROM yearly AS y
INNER JOIN core.leases AS l
  ON y.turbine = l.turbine
  AND MAKE_DATE(y.year, 12, 31) BETWEEN l.from_day AND l.to_day
LEFT JOIN ref.tiers AS t
  ON y.mwh >= t.from_mwh AND (y.mwh < t.to_mwh OR t.to_mwh IS NULL)
GROUP BY
  l.parcel,
  y.year
