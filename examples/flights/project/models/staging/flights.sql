MODEL (
  name staging.flights,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column flight_date,
    batch_size 92
  ),
  owner 'flight-data',
  description 'One row per scheduled flight, with clear names and types and a flag for cancelled flights.',
  column_descriptions (
    flight_date = 'Scheduled date of departure, local time of the airport',
    scheduled_hour_utc = 'Scheduled hour of departure, UTC; joins with observations of the weather',
    carrier = 'IATA code of the carrier',
    flight_number = 'Number of the flight, unique per carrier and scheduled hour',
    tail_number = 'Registration of the aircraft, unknown for some cancelled flights',
    origin = 'FAA code of the airport of departure',
    destination = 'FAA code of the airport of arrival',
    departure_delay_minutes = 'Minutes after schedule, negative when early, unknown when cancelled',
    arrival_delay_minutes = 'Minutes after schedule, negative when early, unknown when cancelled or diverted',
    distance_miles = 'Distance between the airports in miles',
    is_cancelled = 'True if the flight never departed'
  ),
  grain (scheduled_hour_utc, carrier, flight_number),
  audits (
    NOT_NULL(
      columns := (flight_date, scheduled_hour_utc, carrier, flight_number, origin, destination)
    ),
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (scheduled_hour_utc, carrier, flight_number)),
    NUMBER_OF_ROWS(threshold := 1)
  )
);

SELECT
  CAST(f.time_hour AS TIMESTAMP) AS scheduled_hour_utc,
  CAST(f.carrier AS STRING) AS carrier,
  CAST(f.flight AS INT) AS flight_number,
  CAST(f.tailnum AS STRING) AS tail_number,
  CAST(f.origin AS STRING) AS origin,
  CAST(f.dest AS STRING) AS destination,
  CAST(f.dep_delay AS INT) AS departure_delay_minutes,
  CAST(f.arr_delay AS INT) AS arrival_delay_minutes,
  CAST(f.distance AS INT) AS distance_miles,
  CAST(f.dep_time IS NULL AS BOOLEAN) AS is_cancelled,
  CAST(f.flight_date AS DATE) AS flight_date
FROM raw.flights AS f
WHERE
  f.flight_date BETWEEN @start_date AND @end_date
