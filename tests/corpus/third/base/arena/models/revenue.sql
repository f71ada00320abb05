MODEL (
  name arena.revenue,
  kind FULL,
  grain (region, ordered_on)
);

SELECT
  'eu' AS region,
  CAST(ordered_at AS DATE) AS ordered_on,
  SUM(net) AS net
FROM eu.orders
GROUP BY
  CAST(ordered_at AS DATE)
UNION ALL
SELECT
  'us' AS region,
  CAST(ordered_at AS DATE) AS ordered_on,
  SUM(net) AS net
FROM us.orders
GROUP BY
  CAST(ordered_at AS DATE)
UNION ALL
SELECT
  'asia' AS region,
  CAST(ordered_at AS DATE) AS ordered_on,
  SUM(net) AS net
FROM asia.orders
GROUP BY
  CAST(ordered_at AS DATE)
