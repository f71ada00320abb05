MODEL (
  name marts.route_summary,
  kind FULL,
  owner 'network-planning',
  description 'One row per route: how often it is flown, how far it is and how late it arrives.',
  column_descriptions (
    origin = 'FAA code of the airport of departure',
    destination = 'FAA code of the airport of arrival',
    destination_name = 'Name of the airport of arrival, unknown for airports outside of the reference list',
    scheduled_flights = 'Flights in the schedule',
    distance_miles = 'Distance between the airports in miles',
    mean_arrival_delay_minutes = 'Mean delay at arrival in minutes, early arrivals counted negative'
  ),
  grain (origin, destination),
  audits (
    NOT_NULL(columns := (origin, destination, scheduled_flights)),
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (origin, destination)),
    NOT_NULL_NON_BLOCKING(columns := (
      destination_name
    ))
  )
);

SELECT
  f.origin,
  f.destination,
  a.airport_name AS destination_name,
  CAST(COUNT(*) AS BIGINT) AS scheduled_flights,
  CAST(MAX(f.distance_miles) AS INT) AS distance_miles,
  CAST(AVG(f.arrival_delay_minutes) AS DOUBLE) AS mean_arrival_delay_minutes
FROM staging.flights AS f
LEFT JOIN ref.airports AS a
  ON f.destination = a.airport
GROUP BY
  f.origin,
  f.destination,
  a.airport_name
