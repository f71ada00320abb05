MODEL (
  name marts.carrier_scorecard,
  kind FULL,
  owner 'network-planning',
  description 'One row per carrier: volume, punctuality and mean delay over the whole period.',
  column_descriptions (
    carrier = 'IATA code of the carrier',
    airline_name = 'Registered name of the carrier',
    scheduled_flights = 'Flights in the schedule',
    cancelled_share = 'Share of scheduled flights that never departed',
    on_time_share = 'Share of arrivals that were not late',
    mean_arrival_delay_minutes = 'Mean delay at arrival in minutes, early arrivals counted negative'
  ),
  grain carrier,
  audits (
    NOT_NULL(columns := (carrier, airline_name, scheduled_flights)),
    UNIQUE_VALUES(columns := (
      carrier
    )),
    SHARE_BETWEEN_ZERO_AND_ONE(column := cancelled_share),
    SHARE_BETWEEN_ZERO_AND_ONE(column := on_time_share)
  )
);

SELECT
  d.carrier,
  l.airline_name,
  CAST(SUM(d.scheduled_flights) AS BIGINT) AS scheduled_flights,
  CAST(SUM(d.cancelled_flights) / SUM(d.scheduled_flights) AS DOUBLE) AS cancelled_share,
  CAST(1 - SUM(d.late_arrivals) / NULLIF(SUM(d.arrived_flights), 0) AS DOUBLE) AS on_time_share,
  CAST(SUM(d.arrival_delay_minutes_total) / NULLIF(SUM(d.arrived_flights), 0) AS DOUBLE) AS mean_arrival_delay_minutes
FROM marts.daily_carrier_performance AS d
INNER JOIN ref.airlines AS l
  ON d.carrier = l.carrier
GROUP BY
  d.carrier,
  l.airline_name
