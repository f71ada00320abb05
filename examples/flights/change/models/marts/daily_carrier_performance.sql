MODEL (
  name marts.daily_carrier_performance,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column flight_date,
    batch_size 92
  ),
  owner 'network-planning',
  description 'What each carrier scheduled, flew and delivered late, day by day. Totals only, so that any period can be summed.',
  column_descriptions (
    flight_date = 'Scheduled date of departure',
    carrier = 'IATA code of the carrier',
    scheduled_flights = 'Flights in the schedule',
    cancelled_flights = 'Flights that never departed',
    arrived_flights = 'Flights with a recorded arrival',
    late_arrivals = 'Arrivals 15 minutes or more after schedule, as the US Department of Transportation counts',
    arrival_delay_minutes_total = 'Sum of the delays at arrival, early arrivals counted negative'
  ),
  grain (flight_date, carrier),
  audits (
    NOT_NULL(columns := (flight_date, carrier)),
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (flight_date, carrier)),
    FORALL(
      criteria := (
        late_arrivals <= arrived_flights,
        arrived_flights + cancelled_flights <= scheduled_flights
      )
    )
  )
);

SELECT
  f.carrier,
  CAST(COUNT(*) AS BIGINT) AS scheduled_flights,
  CAST(SUM(CASE WHEN f.is_cancelled THEN 1 ELSE 0 END) AS BIGINT) AS cancelled_flights,
  CAST(COUNT(f.arrival_delay_minutes) AS BIGINT) AS arrived_flights,
  CAST(SUM(CASE WHEN f.arrival_delay_minutes >= 15 THEN 1 ELSE 0 END) AS BIGINT) AS late_arrivals,
  CAST(COALESCE(SUM(f.arrival_delay_minutes), 0) AS BIGINT) AS arrival_delay_minutes_total,
  f.flight_date
FROM staging.flights AS f
WHERE
  f.flight_date BETWEEN @start_date AND @end_date
GROUP BY
  f.flight_date,
  f.carrier
