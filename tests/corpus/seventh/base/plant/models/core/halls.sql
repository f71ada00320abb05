MODEL (
  name core.halls,
  kind FULL,
  audits (not_null(columns := (hall)))
);

SELECT DISTINCT m.hall, YEAR(m.installed_on) AS since FROM ref.machines AS m
