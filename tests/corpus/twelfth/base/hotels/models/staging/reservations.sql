MODEL (
  name stg.reservations,
  kind INCREMENTAL_BY_UNIQUE_KEY (
    unique_key reservation_id,
    when_matched (
      WHEN MATCHED AND source.modified_at >= target.modified_at THEN UPDATE SET
        target.guest_id = source.guest_id,
        target.property_id = source.property_id,
        target.room_type = source.room_type,
        target.check_in = source.check_in,
        target.check_out = source.check_out,
        target.status = source.status,
        target.channel = source.channel,
        target.nightly_price = source.nightly_price,
        target.modified_at = source.modified_at
    )
  ),
  storage_format delta,
  grain reservation_id,
  audits (UNIQUE_VALUES(columns := (reservation_id)), NOT_NULL(columns := (reservation_id, check_in, check_out)))
);

select r.reservation_id
     , r.guest_id
     , r.property_id
     , r.room_type
     , r.check_in
     , r.check_out
     , upper(r.status)               as status
     , coalesce(r.channel, 'direct') as channel
     , r.nightly_price
     , r.modified_at
  from pms.reservations as r
 where r.modified_at between @start_ts and @end_ts
qualify row_number() over (partition by r.reservation_id order by r.modified_at desc, r.created_at desc) = 1
