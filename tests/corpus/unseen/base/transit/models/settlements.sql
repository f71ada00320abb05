MODEL (
  name fare.settlements,
  kind FULL,
  description 'The newest version of each settlement.',
  grain settlement_id,
  audits (
    NOT_NULL(columns := (settlement_id))
  )
);

WITH versions AS (
  SELECT
    s.settlement_id,
    s.card_id,
    s.amount,
    s.settlement_status,
    s.settled_on,
    ROW_NUMBER() OVER (PARTITION BY s.settlement_id ORDER BY s.updated_at DESC, s.file_line DESC) AS rn
  FROM acq.settlements AS s
)
SELECT
  CAST(settlement_id AS STRING) AS settlement_id,
  CAST(card_id AS STRING) AS card_id,
  CAST(amount AS DECIMAL(10, 2)) AS amount,
  CAST(settlement_status AS STRING) AS settlement_status,
  CAST(settled_on AS DATE) AS settled_on
FROM versions
WHERE
  rn = 1
