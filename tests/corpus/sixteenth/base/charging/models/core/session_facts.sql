MODEL (
  name core.session_facts,
  kind FULL,
  description 'One row a session that is over and took more than a trifle, with the station and tariff of its time.',
  grain session_id,
  audits (
    UNIQUE_VALUES(columns := (session_id)),
    NOT_NULL(columns := (session_id, connector_id, kwh)),
    ACCEPTED_RANGE(column := kwh, min_v := 0, max_v := 400)
  )
);

SELECT
  s.session_id,
  s.connector_id,
  c.station_id,
  c.plug,
  h.site_code,
  h.tariff_code,
  k.driver_id,
  s.card_id,
  s.started_at,
  s.stopped_at,
  CAST(s.started_at AS DATE) AS started_on,
  TIMESTAMPDIFF(MINUTE, s.started_at, s.stopped_at) AS minutes,
  @kwh(s.energy_wh) AS kwh,
  s.stop_reason
FROM stg.sessions AS s
INNER JOIN stg.connectors AS c
  ON s.connector_id = c.connector_id
LEFT JOIN hist.stations AS h
  ON c.station_id = h.station_id
  AND s.started_at >= h.valid_from
  AND (
    s.started_at < h.valid_to OR h.valid_to IS NULL
  )
LEFT JOIN crm.cards AS k
  ON s.card_id = k.card_id
  AND CAST(s.started_at AS DATE) >= k.valid_from
  AND CAST(s.started_at AS DATE) <= COALESCE(k.valid_to, DATE '2999-12-31')
WHERE
  NOT s.stopped_at IS NULL AND s.energy_wh >= @min_session_wh
