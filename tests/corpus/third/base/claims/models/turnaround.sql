MODEL (
  name claims.turnaround,
  kind VIEW
);

SELECT
  c.claim_no,
  DATEDIFF(CAST(c.decided_at AS DATE), c.service_date) AS days,
  CASE
    WHEN c.decided_at IS NULL THEN 'open'
    WHEN DATEDIFF(CAST(c.decided_at AS DATE), c.service_date) <= 14 THEN 'fast'
    WHEN DATEDIFF(CAST(c.decided_at AS DATE), c.service_date) <= 30 THEN 'normal'
    ELSE 'slow'
  END AS speed,
  GREATEST(c.approved, c.copay) AS exposure
FROM claims.claims AS c
