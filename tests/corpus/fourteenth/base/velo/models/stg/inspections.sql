MODEL (
  name stg.inspections,
  kind FULL,
  grain frame_no,
  description 'The last inspection of each frame.',
  audits (
    UNIQUE_VALUES(columns := (frame_no)),
    NOT_NULL(columns := (frame_no))
  )
);

SELECT
  UPPER(i.frame_no) AS frame_no,
  CAST(i.attempt AS INT) AS attempt,
  i.verdict,
  i.torque_nm,
  CAST(i.inspected_at AS TIMESTAMP) AS inspected_at
FROM qa.inspections AS i
WHERE
  NOT i.frame_no IS NULL
QUALIFY
  ROW_NUMBER() OVER (PARTITION BY UPPER(i.frame_no) ORDER BY i.attempt DESC, i.inspected_at DESC) = 1
