MODEL (
  name mart.channel_months,
  kind FULL,
  grain month
);

SELECT
  p.month,
  p.web,
  p.phone,
  p.agency
FROM (
  SELECT
    DATE_TRUNC('MONTH', b.booked_date) AS month,
    b.channel AS channel,
    b.price AS price
  FROM stg.bookings AS b
) PIVOT(SUM(price) FOR channel IN ('web' AS web, 'phone' AS phone, 'agency' AS agency)) AS p
