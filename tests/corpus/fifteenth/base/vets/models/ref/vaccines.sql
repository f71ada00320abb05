MODEL (
  name ref.vaccines,
  kind SEED (
    path '../../seeds/vaccines.csv'
  ),
  columns (
    vaccine STRING,
    species STRING,
    repeat_days INT
  ),
  grain (vaccine, species),
  audits (UNIQUE_COMBINATION_OF_COLUMNS(columns := (vaccine, species)))
);
