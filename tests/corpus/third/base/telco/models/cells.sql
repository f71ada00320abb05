MODEL (
  name telco.cells,
  kind FULL,
  grain cell_ref
);

SELECT
  C.CELL_REF AS cell_ref,
  REGEXP_EXTRACT(C.CELL_REF, '([A-Z]+)-([0-9]+)', 2) AS site_no,
  REGEXP_EXTRACT(C.CELL_REF, '([A-Z]+)-([0-9]+)', 1) AS site_code,
  SPLIT_PART(C.CELL_REF, '|', 2) AS sector,
  C.REGION AS region,
  C.TECHNOLOGY AS technology,
  C.UPDATED_AT AS updated_at
FROM net.cells AS C
