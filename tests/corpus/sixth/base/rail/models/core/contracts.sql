MODEL (
  name core.contracts,
  kind INCREMENTAL_BY_UNIQUE_KEY (unique_key contract_id),
  table_format iceberg,
  grain contract_id,
  audits (not_null(columns := (contract_id)), unique_values(columns := (contract_id)))
);

SELECT c.contract_id, c.customer, c.price, c.signed_on
FROM ops.contracts AS c
WHERE c.signed_on BETWEEN @start_ds AND @end_ds
