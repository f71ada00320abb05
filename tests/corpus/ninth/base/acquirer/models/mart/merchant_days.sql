MODEL (
  name mart.merchant_days,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column captured_on,
    lookback 3,
    batch_size 30
  ),
  partitioned_by captured_on,
  grain (merchant_id, captured_on),
  audits (not_null(columns := (merchant_id, captured_on)), unique_combination_of_columns(columns := (merchant_id, captured_on)))
);

SELECT
  e.merchant_id,
  e.captured_on,
  COUNT(*) AS captures,
  @EACH(@schemes, s -> SUM(CASE WHEN e.scheme = @s THEN e.amount_eur ELSE 0 END) AS eur_@s),
  SUM(@signed(e.amount_eur, e.kind)) AS net_eur,
  MAX(e.amount_eur) AS largest_eur
FROM core.in_euro AS e
WHERE e.captured_on BETWEEN @start_date AND @end_date
GROUP BY e.merchant_id, e.captured_on
