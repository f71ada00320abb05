MODEL (
  name ref.terms,
  kind SEED (
    path '../../seeds/terms.csv'
  ),
  columns (
    term STRING,
    starts_on DATE,
    ends_on DATE
  ),
  grain term,
  audits (
    NOT_NULL(columns := (term, starts_on, ends_on)),
    UNIQUE_VALUES(columns := (term))
  )
);
