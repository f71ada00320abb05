MODEL (
  name marts.carrier_fleet,
  kind FULL,
  owner 'network-planning',
  description 'One row per carrier: how many aircraft it flew from New York City, how large and how old they are.',
  column_descriptions (
    carrier = 'IATA code of the carrier',
    aircraft = 'Aircraft with at least one departure',
    registered_aircraft = 'Those of them that the register knows',
    mean_seats = 'Mean number of seats of the registered aircraft',
    mean_built_year = 'Mean year of construction of the registered aircraft'
  ),
  grain carrier,
  audits (
    NOT_NULL(columns := (carrier, aircraft)),
    UNIQUE_VALUES(columns := (
      carrier
    )),
    FORALL(criteria := (
      registered_aircraft <= aircraft
    ))
  )
);

WITH flown AS (
  SELECT DISTINCT
    f.carrier,
    f.tail_number
  FROM staging.flights AS f
  WHERE
    NOT f.is_cancelled AND NOT f.tail_number IS NULL
)
SELECT
  flown.carrier,
  CAST(COUNT(*) AS BIGINT) AS aircraft,
  CAST(COUNT(p.tailnum) AS BIGINT) AS registered_aircraft,
  CAST(AVG(p.seats) AS DOUBLE) AS mean_seats,
  CAST(AVG(p.year) AS DOUBLE) AS mean_built_year
FROM flown
LEFT JOIN raw.planes AS p
  ON flown.tail_number = p.tailnum
GROUP BY
  flown.carrier
