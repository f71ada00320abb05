MODEL (
  name web.campaigns,
  kind FULL,
  cron '@daily',
  description 'Clicks, cost and sessions that began within an hour of a click.',
  grain campaign
);

WITH clicks AS (
  SELECT
    c.campaign,
    COUNT(*) AS clicks,
    COUNT(DISTINCT c.visitor_id) AS visitors,
    SUM(c.cost) AS cost
  FROM ads.clicks AS c
  GROUP BY
    c.campaign
), landed AS (
  SELECT
    c.campaign,
    COUNT(DISTINCT CONCAT_WS('-', s.visitor_id, CAST(s.session_start AS STRING))) AS sessions
  FROM ads.clicks AS c
  INNER JOIN web.sessions AS s
    ON c.visitor_id = s.visitor_id
    AND s.session_start >= c.clicked_at
    AND s.session_start < c.clicked_at + INTERVAL 1 HOUR
  GROUP BY
    c.campaign
)
SELECT
  clicks.campaign,
  clicks.clicks,
  clicks.visitors,
  clicks.cost,
  COALESCE(landed.sessions, 0) AS sessions,
  clicks.cost / NULLIF(landed.sessions, 0) AS cost_per_session
FROM clicks
LEFT JOIN landed
  ON clicks.campaign = landed.campaign
