MODEL (
  name mart.kpi,
  kind FULL,
  grain (machine_id, reading_day),
  audits (not_null(columns := (machine_id)))
);

SELECT
  o.machine_id,
  o.reading_day,
  o.pieces,
  @share_of(o.scrap, o.pieces) AS scrap_share,
  SUM(o.pieces) OVER (PARTITION BY o.machine_id ORDER BY o.reading_day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS pieces_7d
FROM core.output AS o
