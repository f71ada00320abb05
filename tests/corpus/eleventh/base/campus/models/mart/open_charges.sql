MODEL (
  name mart.open_charges,
  kind VIEW,
  grain charge_id
);

SELECT
  @STAR(core.charges, alias := c, except_ := [paid])
FROM core.charges AS c
WHERE
  c.open > 0
