MODEL (
  name fund.trades,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column traded_on
  ),
  cron '@daily',
  grain exec_id
);

SELECT
  x.exec_id,
  x.isin,
  x.account,
  x.side,
  CASE WHEN x.side = 'BUY' THEN x.qty WHEN x.side IN ('SELL', 'SHORT') THEN -x.qty ELSE 0 END AS qty,
  x.qty * x.price AS amount,
  BROUND(x.qty * x.price * 0.0005, 2) AS stamp_duty,
  x.fee,
  CAST(x.executed_at AS DATE) AS traded_on,
  DATE_ADD(CAST(x.executed_at AS DATE), 2) AS settles_on
FROM oms.executions AS x
WHERE
  CAST(x.executed_at AS DATE) BETWEEN @start_date AND @end_date
