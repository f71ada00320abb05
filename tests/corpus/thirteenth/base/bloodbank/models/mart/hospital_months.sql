MODEL (
  name mart.hospital_months,
  kind FULL,
  grain (month, hospital_code),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (month, hospital_code)),
    NOT_NULL(columns := (month, hospital_code))
  )
);

SELECT
  TRUNC(o.ordered_on, 'MM') AS month,
  o.hospital_code,
  h.hospital_name,
  SUM(o.units) AS units,
  SUM(o.units * o.unit_price) AS amount
FROM stg.orders AS o
JOIN ref.hospitals AS h
  ON h.hospital_code = o.hospital_code
WHERE
  o.currency = @VAR('home_currency')
GROUP BY
  1,
  2,
  3
