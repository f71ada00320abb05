model (
  name grid.tariffs,
  kind seed (
    path '../seeds/tariffs.csv'
  ),
  columns (
    tariff string,
    base_fee decimal(8,2),
    label string
  ),
  grain tariff
);
