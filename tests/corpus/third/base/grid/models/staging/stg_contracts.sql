model (
  name grid.stg_contracts,
  kind view,
  grain contract_id
);

select
  c.contract_id,
  c.meter_id,
  c.customer_no,
  upper(c.tariff) as tariff,
  c.price_kwh,
  c.valid_from,
  coalesce(c.valid_to, cast('9999-12-31' as date)) as valid_to, -- the first day that it does not hold any more
  c.updated_at
from crm.contracts as c
