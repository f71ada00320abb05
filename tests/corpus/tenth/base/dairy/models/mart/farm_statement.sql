MODEL (
  name mart.farm_statement,
  kind VIEW,
  owner finance,
  grain (farm_id, picked_on)
);

SELECT p.farm_id, f.name, p.picked_on, p.litres, p.amount
FROM mart.payments AS p
JOIN stg.farms AS f ON f.farm_id = p.farm_id
