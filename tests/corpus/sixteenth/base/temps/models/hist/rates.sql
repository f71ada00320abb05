MODEL (
  name hist.rates,
  kind SCD_TYPE_2_BY_COLUMN (
    unique_key assignment_id,
    columns (bill_rate, pay_rate),
    invalidate_hard_deletes FALSE,
    time_data_type TIMESTAMP
  ),
  description 'Rates of an assignment over time; valid_to is NULL for those of today.',
  grain (assignment_id, valid_from),
  audits (
    NOT_NULL(columns := (assignment_id, bill_rate))
  )
);

SELECT
  a.assignment_id,
  a.bill_rate,
  a.pay_rate,
  a.currency
FROM stg.assignments AS a
