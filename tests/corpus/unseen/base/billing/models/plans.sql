MODEL (
  name bill.plans,
  kind SEED (
    path '../seeds/plans.csv'
  ),
  columns (
    plan_code STRING,
    plan_name STRING,
    monthly_price DOUBLE,
    billing_months INT
  ),
  grain plan_code
);
