MODEL (
  name stg.farms,
  kind FULL,
  owner collection,
  grain farm_id,
  audits (not_null(columns := (farm_id)))
);

SELECT farm_id, name, SHA2(iban, 256) AS iban_hash, country, updated_at
FROM raw.farms
WHERE @in_countries(country)
