MODEL (
  name claims.plan_costs,
  kind FULL,
  description 'Costs by the plan that a member had on the day of the service.'
);

SELECT
  m.plan,
  m.postcode_area,
  SUM(c.approved) AS approved,
  COUNT(DISTINCT c.member_no) AS members
FROM claims.claims AS c
INNER JOIN claims.members AS m
  ON m.member_no = c.member_no
  AND c.service_date >= CAST(m.valid_from AS DATE)
  AND (m.valid_to IS NULL OR c.service_date < CAST(m.valid_to AS DATE))
GROUP BY
  m.plan,
  m.postcode_area
