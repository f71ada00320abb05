MODEL (
  name mart.sailing_load,
  kind FULL,
  description 'How full each sailing was. Capacity as it was when the ship sailed.',
  grain sailing_id,
  audits (
    UNIQUE_VALUES(columns := (sailing_id)),
    NOT_NULL(columns := (sailing_id))
  )
);

WITH sold AS (
  SELECT
    r.sailing_id,
    SUM(CASE WHEN r.kind = 'passenger' THEN 1 ELSE 0 END) AS passengers_sold,
    SUM(r.lane_metres) AS metres_sold,
    SUM(r.revenue_eur) AS revenue_eur
  FROM core.ticket_revenue AS r
  GROUP BY
    r.sailing_id
), on_board AS (
  SELECT
    t.sailing_id,
    COUNT(*) AS boarded
  FROM core.boarded AS b
  INNER JOIN stg.tickets AS t
    ON b.ticket_id = t.ticket_id
  WHERE
    t.kind = 'passenger'
  GROUP BY
    t.sailing_id
)
SELECT
  s.sailing_id,
  s.route_code,
  s.departs_at,
  v.vessel_name,
  v.seats,
  COALESCE(k.passengers_sold, 0) AS passengers_sold,
  COALESCE(o.boarded, 0) AS boarded,
  COALESCE(k.passengers_sold, 0) / NULLIF(v.seats, 0) AS load_factor,
  COALESCE(k.metres_sold, 0) AS metres_sold,
  COALESCE(k.revenue_eur, 0) AS revenue_eur
FROM stg.sailings AS s
LEFT JOIN hist.vessels AS v
  ON s.vessel_id = v.vessel_id
  AND s.departs_at >= v.valid_from
  AND (
    s.departs_at < v.valid_to OR v.valid_to IS NULL
  )
LEFT JOIN sold AS k
  ON s.sailing_id = k.sailing_id
LEFT JOIN on_board AS o
  ON s.sailing_id = o.sailing_id
WHERE
  s.status <> 'cancelled'
