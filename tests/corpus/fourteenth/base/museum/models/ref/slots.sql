MODEL (
  name ref.slots,
  kind SEED (
    path '../../seeds/slots.csv'
  ),
  columns (
    slot STRING,
    capacity INT
  ),
  grain slot,
  audits (
    UNIQUE_VALUES(columns := (slot)),
    NOT_NULL(columns := (slot))
  )
)
