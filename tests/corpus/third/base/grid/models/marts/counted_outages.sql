model (
  name grid.counted_outages,
  kind full
);

select
  o.outage_id,
  o.feeder,
  size(o.meters) as meters,
  o.cause
from scada.outages as o
where
  size(o.meters) > 0
