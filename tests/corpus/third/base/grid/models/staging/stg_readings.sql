model (
  name grid.stg_readings,
  kind incremental_by_time_range (
    time_column read_on,
    batch_size 10,
    lookback 2
  ),
  partitioned_by (read_on),
  grain (meter_id, read_at),
  audits (
    not_null(columns := (meter_id, read_at)),
    unique_combination_of_columns(columns := (meter_id, read_at))
  )
);

with ranked as (
  select
    r.meter_id,
    r.read_at,
    r.kwh,
    coalesce(nullif(trim(r.quality), ''), 'unknown') as quality,
    r.received_at,
    row_number() over (partition by r.meter_id, r.read_at order by r.received_at desc, r.kwh desc) as rn
  from scada.readings as r
  where
    cast(r.read_at as date) between @start_ds and @end_ds
)
select
  meter_id,
  read_at,
  cast(read_at as date) as read_on,
  kwh,
  quality,
  received_at
from ranked
where
  rn = 1
