MODEL (
  name fare.line_usage,
  kind VIEW
);

SELECT
  l.line_id,
  l.line_name,
  l.mode,
  COUNT(r.tap_id) AS rides
FROM fare.lines AS l
LEFT JOIN fare.rides AS r
  ON l.line_id = r.line_id
GROUP BY
  l.line_id,
  l.line_name,
  l.mode
