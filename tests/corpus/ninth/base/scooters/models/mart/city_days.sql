MODEL (
  name mart.city_days,
  kind FULL,
  grain (city, day),
  audits (unique_combination_of_columns(columns := (city, day)), number_of_rows(threshold := 3))
);

WITH rides AS (
  SELECT
    r.city,
    CAST(r.started_local AS DATE) AS day,
    COUNT(*) AS rides,
    COUNT(DISTINCT r.rider_id) AS riders,
    SUM(r.paid) AS paid,
    SUM(r.meters) / 1000 AS km,
    COUNT(r.promo) AS promo_rides
  FROM fleet.rides AS r
  WHERE r.status = 'done'
  GROUP BY r.city, CAST(r.started_local AS DATE)
),

rain AS (
  SELECT w.city, CAST(@local_time(w.hour, w.city) AS DATE) AS day, SUM(w.rain_mm) AS rain_mm, AVG(w.temperature_c) AS temperature_c
  FROM weather.hours AS w
  GROUP BY w.city, CAST(@local_time(w.hour, w.city) AS DATE)
)

SELECT
  COALESCE(r.city, w.city) AS city,
  COALESCE(r.day, w.day) AS day,
  COALESCE(r.rides, 0) AS rides,
  r.riders,
  r.paid,
  r.km,
  r.paid / NULLIF(r.km, 0) AS paid_per_km,
  r.promo_rides / r.rides AS promo_share,
  w.rain_mm,
  w.temperature_c,
  AVG(COALESCE(r.rides, 0)) OVER (
    PARTITION BY COALESCE(r.city, w.city) ORDER BY COALESCE(r.day, w.day) ROWS BETWEEN 6 PRECEDING AND CURRENT ROW
  ) AS rides_week_avg
FROM rides AS r
FULL JOIN rain AS w ON w.city = r.city AND w.day = r.day
