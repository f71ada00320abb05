MODEL (
  name ship.@{region}_scans,
  kind VIEW,
  blueprints (
    (region := north, region_name := 'North'),
    (region := south, region_name := 'South'),
    (region := islands, region_name := 'Islands')
  )
);

SELECT
  s.event_id,
  s.parcel_id,
  s.depot_id,
  s.event_type,
  s.event_ts
FROM ship.scans AS s
INNER JOIN ship.depots AS d
  ON s.depot_id = d.depot_id
WHERE
  d.region = @region_name
