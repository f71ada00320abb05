MODEL (
  name telco.topup_totals,
  kind VIEW
);

SELECT
  C.PAID_ON AS paid_on,
  SUM(C.NET_AMOUNT) AS net_amount
FROM telco.topup_channels AS C
GROUP BY
  C.PAID_ON
