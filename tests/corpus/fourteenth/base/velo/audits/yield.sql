AUDIT (
  name scrap_is_rare,
  dialect spark,
  standalone TRUE
);

SELECT
  d.day,
  d.line
FROM mart.line_days AS d
WHERE
  d.scrapped > 0.05 * (d.done + d.scrapped)
