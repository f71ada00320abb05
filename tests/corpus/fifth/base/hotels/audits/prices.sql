AUDIT (
  name price_is_sane,
  defaults (
    most = 20000
  )
);

SELECT
  *
FROM @this_model
WHERE
  price < 0 OR price > @most
