MODEL (
  name mart.distinct_places,
  kind FULL,
  audits (number_of_rows(threshold := 1))
);

SELECT COUNT(*) AS places
FROM (SELECT DISTINCT * FROM core.places) AS p
