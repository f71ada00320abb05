MODEL (
  name staging.weather,
  kind VIEW,
  owner 'flight-data',
  description 'Hourly observations of the weather, without readings that no anemometer survives.',
  column_descriptions (
    origin = 'FAA code of the airport',
    observed_at_utc = 'Hour of the observation, UTC',
    wind_speed_mph = 'Wind in miles per hour; readings above 200 are faults and become unknown',
    precipitation_inches = 'Rain and melted snow of the hour in inches',
    visibility_miles = 'Visibility in miles, 10 means 10 or more'
  ),
  grain (origin, observed_at_utc),
  audits (
    NOT_NULL(columns := (origin, observed_at_utc)),
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (origin, observed_at_utc))
  )
);

SELECT
  CAST(w.origin AS STRING) AS origin,
  CAST(w.time_hour AS TIMESTAMP) AS observed_at_utc,
  CAST(CASE WHEN w.wind_speed <= 200 THEN w.wind_speed END AS DOUBLE) AS wind_speed_mph,
  CAST(w.precip AS DOUBLE) AS precipitation_inches,
  CAST(w.visib AS DOUBLE) AS visibility_miles
FROM raw.weather AS w
