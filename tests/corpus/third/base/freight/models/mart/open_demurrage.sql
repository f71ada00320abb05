MODEL (
  name freight_mart.open_demurrage,
  kind VIEW
);

SELECT
  d.container_no,
  d.demurrage_days
FROM freight_int.dwell AS d
LEFT ANTI JOIN freight_mart.billed_demurrage AS b
  ON b.container_no = d.container_no
WHERE
  d.demurrage_days > 0
