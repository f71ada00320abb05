MODEL (
  name mart.areas,
  kind FULL,
  grain area,
  audits (not_null(columns := (area)))
);

SELECT c.area, COUNT(*) AS customers, MAX(c.name) AS one_name
FROM core.customers AS c
GROUP BY ALL
