MODEL (
  name core.work_days,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column work_date,
    lookback 14,
    batch_size 60
  ),
  description 'Approved work of an assignment on a day. Payroll reads this table.',
  partitioned_by (work_date),
  grain (assignment_id, work_date),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (assignment_id, work_date)),
    NOT_NULL(columns := (assignment_id, work_date, worked_minutes))
  )
);

WITH approved AS (
  SELECT
    s.assignment_id,
    s.work_date,
    SUM(CASE WHEN s.kind = 'regular' THEN s.minutes ELSE 0 END) AS regular_minutes,
    SUM(CASE WHEN s.kind = 'overtime' THEN s.minutes ELSE 0 END) AS overtime_minutes,
    SUM(CASE WHEN s.kind = 'sick' THEN s.minutes ELSE 0 END) AS sick_minutes
  FROM stg.sheets AS s
  WHERE
    s.status = 'approved' AND s.work_date BETWEEN @start_ds AND @end_ds
  GROUP BY
    s.assignment_id,
    s.work_date
)
SELECT
  p.assignment_id,
  a.client_id,
  a.candidate_id,
  a.role_code,
  a.currency,
  p.regular_minutes,
  p.overtime_minutes,
  p.sick_minutes,
  p.regular_minutes + p.overtime_minutes AS worked_minutes,
  @hours(p.regular_minutes) * a.bill_rate + @hours(p.overtime_minutes) * a.bill_rate * r.overtime_factor AS billable,
  @hours(p.regular_minutes + p.sick_minutes) * a.pay_rate + @hours(p.overtime_minutes) * a.pay_rate * r.overtime_factor AS wages,
  p.work_date
FROM approved AS p
INNER JOIN stg.assignments AS a
  ON p.assignment_id = a.assignment_id
INNER JOIN ref.roles AS r
  ON a.role_code = r.role_code
