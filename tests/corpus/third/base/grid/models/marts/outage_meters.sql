model (
  name grid.outage_meters,
  kind full,
  description 'Each outage with each meter that it reached; an outage that reached none stays, with no meter.'
);

select
  o.outage_id,
  o.feeder,
  m.meter_id,
  (unix_timestamp(o.ended_at) - unix_timestamp(o.started_at)) / 60 as minutes,
  o.started_at
from scada.outages as o
lateral view outer explode(o.meters) m as meter_id
