MODEL (
  name fund.nav,
  kind VIEW,
  description 'Value of an account. An account with a position that has no price has no value.'
);

SELECT
  p.account,
  IF(COUNT(p.market_value) = COUNT(*), SUM(p.market_value), NULL) AS nav,
  COUNT(*) AS positions
FROM fund.positions AS p
GROUP BY
  p.account
