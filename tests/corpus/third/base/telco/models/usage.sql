MODEL (
  name telco.usage,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column used_on,
    lookback 2
  ),
  partitioned_by (used_on),
  grain record_id,
  audits (
    NOT_NULL(columns := (record_id, used_on)),
    ACCEPTED_VALUES(column := usage_type, is_in := ('voice', 'sms', 'data'))
  )
);

SELECT DISTINCT
  `C`.`record_id`,
  SHA2(`C`.`msisdn`, 256) AS `subscriber_hash`,
  SUBSTRING(`C`.`imsi`, 1, 5) AS `network`,
  LOWER(`C`.`usage_type`) AS `usage_type`,
  `C`.`started_at`,
  CAST(`C`.`started_at` AS DATE) AS `used_on`,
  CEIL((UNIX_TIMESTAMP(`C`.`ended_at`) - UNIX_TIMESTAMP(`C`.`started_at`)) / 60) AS `billed_minutes`,
  COALESCE(`C`.`bytes`, 0) AS `bytes`,
  `C`.`charged`,
  `C`.`cell_ref`
FROM `net`.`cdr` AS `C`
WHERE
  `C`.`started_at` BETWEEN @start_ts AND @end_ts
