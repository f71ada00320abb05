AUDIT (
  name amount_in_range,
  defaults (least = 0)
);

SELECT * FROM @this_model
WHERE amount < @least OR amount > @most OR amount IS NULL;

AUDIT (
  name ledger_is_balanced,
  standalone true,
  blocking false,
  depends_on (mart.balances)
);

SELECT b.merchant_id, b.booked_on
FROM mart.balances AS b
GROUP BY b.merchant_id, b.booked_on
HAVING SUM(b.moved_eur) <> 0 AND COUNT(DISTINCT b.account) > 1;
