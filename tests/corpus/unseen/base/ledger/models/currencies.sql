MODEL (
  name gl.currencies,
  kind SEED (
    path '../seeds/currencies.csv'
  ),
  columns (
    currency STRING,
    decimals INT,
    active BOOLEAN
  ),
  grain currency
);
