MODEL (
  name core.farm_history,
  kind SCD_TYPE_2_BY_TIME (unique_key farm_id, updated_at_name updated_at),
  owner collection,
  grain farm_id,
  audits (not_null(columns := (farm_id)))
);

SELECT farm_id, name, country, updated_at
FROM stg.farms
