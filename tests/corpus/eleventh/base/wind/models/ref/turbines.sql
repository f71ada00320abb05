MODEL (
  name ref.turbines,
  kind SEED (
    path '../../seeds/turbines.csv'
  ),
  columns (
    turbine STRING,
    site STRING,
    area STRING,
    rated_kw INT,
    hub_m INT,
    in_service DATE
  ),
  grain turbine,
  audits (
    NOT_NULL(columns := (turbine)),
    UNIQUE_VALUES(columns := (turbine))
  )
);
