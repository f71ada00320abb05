MODEL (
  name claims.claims,
  kind FULL,
  description 'The newest version of each claim.',
  grain claim_no,
  audits (
    UNIQUE_VALUES(columns := (claim_no)),
    FORALL(criteria := (billed >= 0, copay >= 0))
  )
);

SELECT
  v.* EXCEPT (rn)
FROM (
  SELECT
    cv.claim_no,
    cv.version,
    cv.member_no,
    cv.provider_no,
    cv.diagnosis,
    cv.status,
    cv.billed,
    cv.approved,
    cv.copay,
    cv.service_date,
    cv.decided_at,
    ROW_NUMBER() OVER (PARTITION BY cv.claim_no ORDER BY cv.version DESC) AS rn
  FROM claims.claim_versions AS cv
) AS v
WHERE
  v.rn = 1
