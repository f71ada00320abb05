MODEL (
  name mart.revpar,
  kind VIEW,
  grain (month, property_id)
);

SELECT
  DATE_TRUNC('MONTH', o.night) AS month,
  o.property_id,
  SUM(o.room_revenue) / NULLIF(SUM(o.rooms), 0) AS revpar,
  SUM(o.room_revenue) / NULLIF(SUM(o.rooms_sold), 0) AS adr
FROM core.occupancy AS o
GROUP BY DATE_TRUNC('MONTH', o.night), o.property_id
