MODEL (
  name claims.providers,
  kind EMBEDDED
);

SELECT
  p.provider_no,
  p.name,
  COALESCE(p.specialty, 'general') AS specialty,
  p.region
FROM core.providers AS p
WHERE
  p.contracted
