MODEL (
  name mart.scores,
  kind FULL,
  grain property_id,
  audits (UNIQUE_VALUES(columns := (property_id)), NOT_NULL(columns := (property_id)))
);

SELECT
  p.property_id,
  p.property_name,
  COUNT(v.review_id) AS reviews,
  AVG(v.score) AS avg_score,
  PERCENTILE_APPROX(v.score, 0.5) AS median_score,
  COUNT_IF(v.score >= 9) / COUNT(v.review_id) - COUNT_IF(v.score <= 6) / COUNT(v.review_id) AS nps
FROM ref.properties AS p
LEFT JOIN stg.reservations AS r ON r.property_id = p.property_id
LEFT JOIN stg.reviews AS v ON v.reservation_id = r.reservation_id
GROUP BY p.property_id, p.property_name
