AUDIT (
  name approved_not_above_billed,
  dialect spark
);

SELECT
  claim_no
FROM @this_model
WHERE
  approved > billed AND booked_on BETWEEN @start_date AND @end_date
