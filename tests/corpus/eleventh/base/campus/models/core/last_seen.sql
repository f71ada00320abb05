MODEL (
  name core.last_seen,
  kind FULL,
  grain card_no
);

WITH doors AS (
  SELECT
    w.card_no,
    w.building,
    w.swiped_local
  FROM stg.swipes AS w
)
SELECT
  d.card_no,
  d.building,
  d.swiped_local
FROM (
  @DEDUPLICATE(doors, [card_no], ['swiped_local DESC', 'building ASC'])
) AS d
