MODEL (
  name stg.guests,
  kind SCD_TYPE_2_BY_COLUMN (
    unique_key guest_id,
    columns [country, loyalty_no],
    execution_time_as_valid_from true,
    time_data_type TIMESTAMP
  ),
  grain (guest_id, valid_from),
  audits (NOT_NULL(columns := (guest_id)))
);

select g.guest_id
     , sha2(lower(trim(g.email)), 256) as email_hash
     , g.country
     , nullif(g.loyalty_no, '')        as loyalty_no
     , year(g.birth_date)              as birth_year
  from pms.guests as g
