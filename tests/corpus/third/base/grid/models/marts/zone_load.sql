model (
  name grid.zone_load,
  kind full
);

select
  c.zone,
  b.read_on,
  sum(b.kwh) as kwh,
  sum(b.energy_charge) as energy_charge
from grid.billing_lines as b
inner join crm.customers as c
  on c.customer_no = b.customer_no
group by
  c.zone,
  b.read_on
having
  sum(b.kwh) > 10
