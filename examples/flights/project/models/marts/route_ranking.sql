MODEL (
  name marts.route_ranking,
  kind VIEW,
  owner 'network-planning',
  description 'The routes of each airport, busiest first.',
  column_descriptions (
    origin = 'FAA code of the airport of departure',
    destination = 'FAA code of the airport of arrival',
    scheduled_flights = 'Flights in the schedule',
    route_rank = 'Position among the routes of the airport, 1 is the busiest'
  ),
  grain (origin, destination),
  audits (
    NOT_NULL(columns := (origin, destination, route_rank)),
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (origin, route_rank))
  )
);

SELECT
  r.origin,
  r.destination,
  r.scheduled_flights,
  CAST(ROW_NUMBER() OVER (PARTITION BY r.origin ORDER BY r.scheduled_flights DESC, r.destination) AS INT) AS route_rank
FROM marts.route_summary AS r
