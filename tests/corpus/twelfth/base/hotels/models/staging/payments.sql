MODEL (
  name stg.payments,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column (paid_on, '%Y-%m-%d'),
    lookback 7,
    forward_only true,
    on_destructive_change error
  ),
  cron '@daily',
  partitioned_by (paid_on),
  grain payment_id,
  audits (
    UNIQUE_VALUES(columns := (payment_id)),
    NOT_NULL(columns := (payment_id, reservation_id)),
    refunds_are_negative
  )
);

select payment_id
     , reservation_id
     , kind
     , case when kind = 'REFUND' then -abs(amount_cents) else amount_cents end / 100.0 as amount
     , paid_at
     , to_date(paid_at) as paid_on
  from (
        select p.*
             , row_number() over (partition by p.payment_id order by p._ingested_at desc) as rn
          from psp.payments as p
         where to_date(p.paid_at) between @start_date and @end_date
       ) as d
 where rn = 1
