MODEL (
  name mart.partner_settlement,
  kind FULL,
  description 'What we owe each partner for a month, the newest version of each record, less our fee.',
  grain (partner, currency, month_start),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (partner, currency, month_start))
  )
);

WITH latest AS (
  SELECT
    c.cdr_id,
    UPPER(c.partner) AS partner,
    c.kwh,
    c.price_cents,
    c.currency,
    c.ended_at
  FROM roam.cdrs AS c
  QUALIFY
    ROW_NUMBER() OVER (PARTITION BY c.cdr_id ORDER BY c.version DESC) = 1
)
SELECT
  l.partner,
  p.partner_name,
  l.currency,
  CAST(DATE_TRUNC('MONTH', l.ended_at) AS DATE) AS month_start,
  COUNT(*) AS records,
  SUM(l.kwh) AS kwh,
  CAST(SUM(l.price_cents) / 100 AS DECIMAL(14, 2)) AS amount,
  CAST(SUM(l.price_cents) / 100 * (1 - p.fee_share) AS DECIMAL(14, 2)) AS payable
FROM latest AS l
INNER JOIN ref.partners AS p
  ON l.partner = p.partner
GROUP BY
  l.partner,
  p.partner_name,
  p.fee_share,
  l.currency,
  CAST(DATE_TRUNC('MONTH', l.ended_at) AS DATE)
