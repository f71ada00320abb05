MODEL (
  name arena.bands,
  kind SEED (
    path '$root/seeds/bands.csv',
    csv_settings (
      delimiter = ';'
    )
  ),
  columns (
    label STRING,
    lower DOUBLE,
    upper DOUBLE
  )
);
