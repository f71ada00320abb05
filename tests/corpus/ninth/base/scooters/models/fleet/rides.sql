MODEL (
  name fleet.rides,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column (ride_day, 'yyyy-MM-dd'),
    forward_only true,
    lookback 2
  ),
  partitioned_by (ride_day),
  grain ride_id,
  references (rider_id),
  allow_partials false,
  audits (
    not_null(columns := (ride_id, ride_day)),
    unique_values(columns := (ride_id)),
    ride_is_plausible(max_kmh := 30)
  )
);

@DEF(day_of, DATE_FORMAT(r.started_at, 'yyyy-MM-dd'));

SELECT
  r.ride_id,
  r.rider_id,
  r.scooter_id,
  r.city,
  r.started_at,
  r.ended_at,
  @local_time(r.started_at, r.city) AS started_local,
  UNIX_TIMESTAMP(r.ended_at) - UNIX_TIMESTAMP(r.started_at) AS seconds,
  r.meters,
  (r.price_cents - COALESCE(r.discount_cents, 0)) / 100 AS paid,
  NULLIF(TRIM(r.promo), '') AS promo,
  r.status,
  @day_of AS ride_day
FROM app.rides AS r
WHERE @day_of BETWEEN @start_ds AND @end_ds
  AND r.status <> 'test'
