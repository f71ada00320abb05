MODEL (
  name mart.cohorts,
  kind VIEW,
  grain (cohort, months_since)
);

WITH firsts AS (
  SELECT r.rider_id, MIN(r.ride_day) AS first_day
  FROM fleet.rides AS r
  GROUP BY r.rider_id
),

active AS (
  SELECT
    DATE_FORMAT(CAST(f.first_day AS DATE), 'yyyy-MM') AS cohort,
    CAST(MONTHS_BETWEEN(TRUNC(CAST(r.ride_day AS DATE), 'MONTH'), TRUNC(CAST(f.first_day AS DATE), 'MONTH')) AS INT) AS months_since,
    r.rider_id
  FROM fleet.rides AS r
  JOIN firsts AS f ON f.rider_id = r.rider_id
)

SELECT a.cohort, a.months_since, COUNT(DISTINCT a.rider_id) AS riders
FROM active AS a
GROUP BY a.cohort, a.months_since
