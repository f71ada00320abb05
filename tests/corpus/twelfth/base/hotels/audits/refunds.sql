AUDIT (
  name refunds_are_negative,
  dialect spark
);

SELECT * FROM @this_model WHERE kind = 'REFUND' AND amount > 0
