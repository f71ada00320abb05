model (
  name grid.billing_lines,
  kind full,
  grain (contract_id, read_on)
);

select
  c.contract_id,
  c.customer_no,
  d.read_on,
  d.kwh,
  c.price_kwh,
  t.base_fee / 30 as base_fee_per_day,
  round(d.kwh * c.price_kwh, 2) as energy_charge
from grid.daily_consumption as d
inner join grid.stg_contracts as c
  on c.meter_id = d.meter_id and d.read_on >= c.valid_from and d.read_on < c.valid_to
left join grid.tariffs as t
  on t.tariff = c.tariff
