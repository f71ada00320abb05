MODEL (
  name sales.customers,
  kind SEED (
    path '../seeds/customers.csv'
  ),
  columns (
    customer_id INT,
    name STRING,
    segment STRING
  ),
  grain customer_id,
  audits (
    NOT_NULL(columns := (
      customer_id
    )),
    UNIQUE_VALUES(columns := (
      customer_id
    ))
  )
);
