AUDIT (
  name share_between_zero_and_one,
  dialect spark
);

/* A share outside of 0 to 1 means that numerator and denominator count different things. */
SELECT
  @column AS share
FROM @this_model
WHERE
  @column < 0 OR @column > 1
