MODEL (
  name fare.card_days,
  kind FULL,
  description 'What a card paid on a day, capped at the day ticket.',
  grain (card_id, tap_date)
);

SELECT
  r.card_id,
  r.tap_date,
  COUNT(*) AS rides,
  COUNT(DISTINCT r.zone) AS zones,
  SUM(r.amount_cents) AS paid_cents,
  LEAST(SUM(r.amount_cents), @VAR('cap_cents')) AS capped_cents
FROM fare.rides AS r
WHERE
  NOT r.card_id IS NULL
GROUP BY
  r.card_id,
  r.tap_date
