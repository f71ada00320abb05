MODEL (
  name claims.diagnosis_groups,
  kind FULL,
  grain chapter
);

SELECT
  CASE
    WHEN c.diagnosis RLIKE '^C|^D[0-4]' THEN 'neoplasm'
    WHEN c.diagnosis RLIKE '^D' THEN 'blood'
    WHEN c.diagnosis LIKE 'E1%' THEN 'diabetes'
    ELSE 'other'
  END AS chapter,
  COUNT(*) AS claims,
  SUM(c.approved) AS approved
FROM claims.claims AS c
GROUP BY
  CASE
    WHEN c.diagnosis RLIKE '^C|^D[0-4]' THEN 'neoplasm'
    WHEN c.diagnosis RLIKE '^D' THEN 'blood'
    WHEN c.diagnosis LIKE 'E1%' THEN 'diabetes'
    ELSE 'other'
  END
