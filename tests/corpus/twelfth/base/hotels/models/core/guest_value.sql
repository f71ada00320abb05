MODEL (
  name core.guest_value,
  kind FULL,
  grain guest_id,
  audits (UNIQUE_VALUES(columns := (guest_id)), NOT_NULL(columns := (guest_id)))
);

WITH stays AS (
  SELECT
    r.guest_id,
    r.reservation_id,
    r.check_in,
    LAG(r.check_in) OVER (PARTITION BY r.guest_id ORDER BY r.check_in, r.reservation_id) AS previous_check_in,
    SUM(r.nightly_price * DATEDIFF(r.check_out, r.check_in)) OVER (
      PARTITION BY r.guest_id ORDER BY r.check_in, r.reservation_id
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS value_so_far,
    ROW_NUMBER() OVER (PARTITION BY r.guest_id ORDER BY r.check_in DESC, r.reservation_id DESC) AS from_last
  FROM stg.reservations AS r
  WHERE NOT r.status IN ('CANCELLED', 'NO_SHOW')
)
SELECT
  s.guest_id,
  g.country,
  g.loyalty_no IS NOT NULL AS is_member,
  s.check_in AS last_check_in,
  DATEDIFF(s.check_in, s.previous_check_in) AS days_between,
  s.value_so_far AS lifetime_value
FROM stays AS s
LEFT JOIN stg.guests AS g
  ON g.guest_id = s.guest_id AND g.valid_to IS NULL
WHERE s.from_last = 1
