AUDIT (
  name one_open_version,
  dialect spark,
  standalone TRUE
);

SELECT
  m.member_no
FROM claims.members AS m
WHERE
  m.valid_to IS NULL
GROUP BY
  m.member_no
HAVING
  COUNT(*) > 1
