model (
  name grid.feeder_reliability,
  kind view,
  grain feeder
);

select
  o.feeder,
  count(distinct o.outage_id) as outages,
  sum(o.minutes) as customer_minutes,
  count(o.meter_id) as meters_hit
from grid.outage_meters as o
group by
  o.feeder
