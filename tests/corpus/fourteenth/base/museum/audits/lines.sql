AUDIT (
  name sane_lines,
  dialect spark
);

SELECT
  *
FROM @this_model
WHERE
  quantity <= 0 OR discount_pct < 0 OR discount_pct > 100
