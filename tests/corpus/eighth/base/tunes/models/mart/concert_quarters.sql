MODEL (
  name mart.concert_quarters,
  kind FULL,
  owner charts,
  grain (concert_id, quarter),
  audits (not_null(columns := (concert_id)))
);

SELECT concert_id, quarter, guests
FROM raw.concerts
UNPIVOT INCLUDE NULLS (guests FOR quarter IN (q1, q2, q3, q4))
