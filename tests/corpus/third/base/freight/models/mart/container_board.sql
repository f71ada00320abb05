MODEL (
  name freight_mart.container_board,
  kind VIEW
);

SELECT
  COALESCE(w.container_no, s.container_no) AS container_no,
  w.moves,
  s.shipments
FROM freight_int.moves_wide AS w
FULL OUTER JOIN (
  SELECT
    container_no,
    COUNT(*) AS shipments
  FROM freight_int.shipment_status
  GROUP BY
    container_no
) AS s
  ON s.container_no = w.container_no
