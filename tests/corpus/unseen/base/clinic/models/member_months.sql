MODEL (
  name care.member_months,
  kind FULL,
  description 'A row for each month in which a patient was covered by a payer on at least one day.',
  grain (patient_id, payer, month_start)
);

SELECT
  c.patient_id,
  LOWER(c.payer) AS payer,
  m.month_start,
  MAX(c.member_no) AS member_no
FROM emr.coverage AS c
INNER JOIN care.months AS m
  ON c.start_date <= m.month_end AND COALESCE(c.end_date, CAST('9999-12-31' AS DATE)) >= m.month_start
GROUP BY
  c.patient_id,
  LOWER(c.payer),
  m.month_start
