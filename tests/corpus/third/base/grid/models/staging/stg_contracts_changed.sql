model (
  name grid.stg_contracts_changed,
  kind view
);

select
  c.contract_id,
  c.meter_id,
  c.customer_no,
  c.tariff,
  c.price_kwh,
  c.updated_at
from grid.stg_contracts as c
where
  c.updated_at >= current_date() - interval 1 day
