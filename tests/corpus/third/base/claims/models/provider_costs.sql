MODEL (
  name claims.provider_costs,
  kind FULL,
  grain (provider_no, service_month)
);

SELECT
  p.provider_no,
  p.specialty,
  p.region,
  CAST(TRUNC(c.service_date, 'MM') AS DATE) AS service_month,
  COUNT(*) AS claims,
  SUM(c.approved) AS approved,
  SUM(c.approved - c.copay) AS paid,
  SUM(IF(c.status = 'rejected', 1, 0)) / COUNT(*) AS rejected_share
FROM claims.claims AS c
INNER JOIN claims.providers AS p
  ON p.provider_no = c.provider_no
GROUP BY
  p.provider_no,
  p.specialty,
  p.region,
  CAST(TRUNC(c.service_date, 'MM') AS DATE)
