MODEL (
  name telco.cell_traffic,
  kind FULL,
  grain (region, used_on)
);

WITH traffic AS (
  SELECT
    U.CELL_REF AS cell_ref,
    U.USED_ON AS used_on,
    SUM(U.BYTES) AS bytes,
    MAX(U.STARTED_AT) AS updated_at
  FROM telco.usage AS U
  WHERE
    U.USAGE_TYPE = 'data'
  GROUP BY
    U.CELL_REF,
    U.USED_ON
)
SELECT
  C.REGION AS region,
  T.USED_ON AS used_on,
  SUM(T.BYTES) AS bytes
FROM traffic AS T
INNER JOIN telco.cells AS C
  ON T.CELL_REF = C.CELL_REF
GROUP BY
  C.REGION,
  T.USED_ON
