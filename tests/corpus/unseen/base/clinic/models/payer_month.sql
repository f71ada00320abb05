MODEL (
  name care.payer_month,
  kind FULL,
  description 'Charges per covered member and month.',
  grain (payer, month_start)
);

WITH members AS (
  SELECT
    mm.payer,
    mm.month_start,
    COUNT(*) AS member_months
  FROM care.member_months AS mm
  GROUP BY
    mm.payer,
    mm.month_start
), charges AS (
  SELECT
    v.payer,
    CAST(DATE_TRUNC('MONTH', v.admitted_on) AS DATE) AS month_start,
    SUM(v.charge) AS charge
  FROM care.visits AS v
  GROUP BY
    v.payer,
    CAST(DATE_TRUNC('MONTH', v.admitted_on) AS DATE)
)
SELECT
  members.payer,
  members.month_start,
  members.member_months,
  COALESCE(charges.charge, 0) AS charge,
  COALESCE(charges.charge, 0) / members.member_months AS charge_pmpm
FROM members
LEFT JOIN charges
  ON members.payer = charges.payer AND members.month_start = charges.month_start
