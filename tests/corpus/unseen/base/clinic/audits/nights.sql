AUDIT (
  name nights_positive,
  dialect spark
);

SELECT
  *
FROM @this_model
WHERE
  @column < 1
