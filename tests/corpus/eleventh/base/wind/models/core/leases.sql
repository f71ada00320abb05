MODEL (
  name core.leases,
  kind FULL,
  grain (parcel, turbine, from_day)
);

SELECT
  o.parcel,
  o.turbine,
  o.share,
  o.from_day,
  COALESCE(o.to_day, DATE '9999-12-31') AS to_day
FROM land.owners AS o
WHERE
  o.share > 0
