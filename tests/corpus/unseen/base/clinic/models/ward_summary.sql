MODEL (
  name care.ward_summary,
  kind VIEW,
  grain ward
);

SELECT
  los.ward,
  COUNT(*) AS stays,
  AVG(los.nights) AS avg_nights,
  SUM(los.charge) AS charge
FROM care.length_of_stay AS los
GROUP BY
  los.ward
