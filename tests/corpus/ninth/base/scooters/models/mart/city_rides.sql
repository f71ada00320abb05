MODEL (
  name mart.rides_@{city},
  kind VIEW,
  blueprints (
    (city := berlin, label := 'berlin'),
    (city := lisbon, label := 'lisbon'),
    (city := helsinki, label := 'helsinki')
  ),
  grain ride_id
);

SELECT r.ride_id, r.started_local, r.seconds, r.paid, r.promo, r.ride_day
FROM fleet.rides AS r
WHERE r.city = @label
  AND r.status = 'done'
