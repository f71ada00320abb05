MODEL (
  name mart.on_time,
  kind FULL,
  grain (booked_on, service),
  audits (
    NOT_NULL(columns := (booked_on, service)),
    ACCEPTED_RANGE(column := on_time_share, min_v := 0, max_v := 1)
  )
);

SELECT
  j.booked_on,
  j.service,
  COUNT(*) AS delivered,
  SUM(CASE WHEN @hours_between(j.picked_up_at, j.delivered_at) <= v.promise_hours THEN 1 ELSE 0 END)
    / COUNT(*) AS on_time_share,
  AVG(j.attempts) AS avg_attempts
FROM core.journeys AS j
INNER JOIN ref.services AS v
  ON v.service = j.service
WHERE j.delivered_at IS NOT NULL
GROUP BY j.booked_on, j.service
HAVING COUNT(*) >= 1
