MODEL (
  name mart.lab_daily,
  kind FULL,
  owner lab,
  grain (lab, taken_on),
  audits (not_null(columns := (lab)))
);

SELECT lab, taken_on, COUNT(*) AS samples, AVG(fat) AS fat, MAX(cells) AS worst
FROM stg.samples
GROUP BY lab, taken_on
