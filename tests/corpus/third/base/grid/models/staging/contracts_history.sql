model (
  name grid.contracts_history,
  kind scd_type_2_by_time (
    unique_key contract_id,
    updated_at_name updated_at
  ),
  description 'The CRM sends the contracts that changed on the day, and no others.',
  grain (contract_id, valid_from)
);

select
  contract_id,
  meter_id,
  customer_no,
  tariff,
  price_kwh,
  updated_at
from grid.stg_contracts_changed
