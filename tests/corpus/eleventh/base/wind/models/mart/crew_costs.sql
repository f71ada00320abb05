MODEL (
  name mart.crew_costs,
  kind VIEW,
  grain (turbine, kind)
);

SELECT
  w.turbine,
  w.kind,
  COUNT(*) AS orders,
  SUM(w.cost) AS cost,
  SUM(w.cost) / SUM(w.people) AS cost_per_head,
  SUM(w.cost) / SUM(SUM(w.cost)) OVER () AS share_of_all
FROM core.work_orders AS w
WHERE
  w.closed
GROUP BY
  w.turbine,
  w.kind
