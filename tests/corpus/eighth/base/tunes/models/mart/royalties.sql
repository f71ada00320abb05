MODEL (
  name mart.royalties,
  kind FULL,
  owner finance,
  depends_on (core.plays_daily, ref.rates, ref.labels, stg.tracks, ref.countries),
  grain (label_id, month),
  audits (not_null(columns := (label_id, month)), royalties_are_plausible)
);

SELECT
  t.label_id,
  TRUNC(d.played_on, 'MM') AS month,
  CAST(SUM(d.plays * r.rate * l.share) AS DECIMAL(18, 6)) AS amount,
  SUM(d.plays) AS plays
FROM core.plays_daily AS d
JOIN ref.rates AS r ON r.plan = d.plan AND d.played_on BETWEEN r.valid_from AND r.valid_to
JOIN stg.tracks AS t ON t.track_id = d.track_id
JOIN ref.labels AS l ON l.label_id = t.label_id
GROUP BY t.label_id, TRUNC(d.played_on, 'MM');

@IF(@runtime_stage = 'evaluating', INSERT INTO ops.deploys SELECT 'royalties', CURRENT_TIMESTAMP());

ON_VIRTUAL_UPDATE_BEGIN;
CREATE OR REPLACE VIEW reports.royalties AS SELECT label_id, month, amount FROM @this_model;
ON_VIRTUAL_UPDATE_END;
