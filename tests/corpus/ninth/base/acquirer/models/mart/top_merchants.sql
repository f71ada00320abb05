MODEL (
  name mart.top_@{scheme},
  kind FULL,
  blueprints (
    (scheme := visa, most := 100),
    (scheme := mastercard, most := 100)
  ),
  grain merchant_id
);

WITH totals AS (
  SELECT d.merchant_id, SUM(d.eur_@{scheme}) AS eur
  FROM mart.merchant_days AS d
  GROUP BY d.merchant_id
)

SELECT t.merchant_id, t.eur, DENSE_RANK() OVER (ORDER BY t.eur DESC) AS place
FROM totals AS t
QUALIFY DENSE_RANK() OVER (ORDER BY t.eur DESC) <= @most
