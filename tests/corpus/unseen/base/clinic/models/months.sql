MODEL (
  name care.months,
  kind SEED (
    path '../seeds/months.csv'
  ),
  columns (
    month_start DATE,
    month_end DATE
  ),
  grain month_start
);
