MODEL (
  name fund.positions,
  kind FULL,
  grain (account, isin)
);

WITH held AS (
  SELECT
    t.account,
    t.isin,
    SUM(t.qty) AS qty,
    ROUND(SUM(t.amount), 2) AS turnover,
    MAX(t.traded_on) AS last_traded_on
  FROM fund.trades AS t
  GROUP BY
    t.account,
    t.isin
), priced AS (
  SELECT
    p.isin,
    MAX_BY(p.close, p.price_date) AS close
  FROM mkt.prices AS p
  WHERE
    p.source = 'official'
  GROUP BY
    p.isin
)
SELECT
  h.account,
  h.isin,
  h.qty,
  h.turnover,
  h.last_traded_on,
  h.qty * p.close AS market_value
FROM held AS h
LEFT JOIN priced AS p
  ON p.isin = h.isin
