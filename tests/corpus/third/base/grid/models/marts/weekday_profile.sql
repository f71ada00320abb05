model (
  name grid.weekday_profile,
  kind full,
  description 'Mean consumption of working days and of weekends.',
  grain (meter_id, is_weekend)
);

select
  d.meter_id,
  dayofweek(d.read_on) in (1, 7) as is_weekend,
  count(*) as days,
  avg(d.kwh) as mean_kwh,
  percentile(d.kwh, 0.5) as median_kwh
from grid.daily_consumption as d
group by
  d.meter_id,
  dayofweek(d.read_on) in (1, 7)
