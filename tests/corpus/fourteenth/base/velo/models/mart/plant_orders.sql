MODEL (
  name mart.@{plant}_orders,
  kind VIEW,
  blueprints (
    (plant := gent, plant_key := 'gent'),
    (plant := porto, plant_key := 'porto')
  ),
  grain wo_id
);

SELECT
  w.wo_id,
  w.bike_code,
  w.planned_qty,
  w.due_on
FROM stg.work_orders AS w
WHERE
  w.plant = @plant_key AND w.closed_on IS NULL
