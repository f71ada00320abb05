AUDIT (
  name every_posting_has_its_counterpart,
  dialect spark,
  standalone TRUE
);

SELECT
  p.booked_on,
  p.currency
FROM gl.postings AS p
GROUP BY
  p.booked_on,
  p.currency
HAVING
  SUM(p.amount) <> 0
