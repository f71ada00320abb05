model (
  name grid.daily_consumption,
  kind full,
  grain (meter_id, read_on)
);

select
  meter_id,
  read_on,
  sum(kwh) as kwh,
  sum(case when hour(read_at) >= @var('peak_from') and hour(read_at) < @var('peak_to') then kwh else 0 end) as peak_kwh,
  count_if(quality <> 'measured') as estimated_readings,
  max(kwh) as highest_kwh
from grid.stg_readings
group by
  meter_id,
  read_on
