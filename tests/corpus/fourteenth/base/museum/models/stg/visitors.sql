MODEL (
  name stg.visitors,
  kind VIEW,
  grain visitor_id,
  description 'Visitors without what names them.'
);

SELECT
  CAST(v.visitor_id AS BIGINT) AS visitor_id,
  UPPER(v.country) AS country,
  YEAR(v.birth_date) AS birth_year,
  COALESCE(v.newsletter, FALSE) AS newsletter
FROM crm.visitors AS v
