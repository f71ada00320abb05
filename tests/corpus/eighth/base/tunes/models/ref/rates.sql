MODEL (
  name ref.rates,
  kind SEED (path '../../seeds/rates.csv'),
  columns (plan STRING, rate DECIMAL(9, 6), valid_from DATE, valid_to DATE),
  owner finance,
  grain (plan, valid_from),
  audits (mutually_exclusive_ranges(lower_bound_column := valid_from, upper_bound_column := valid_to, partition_clause := plan))
);
