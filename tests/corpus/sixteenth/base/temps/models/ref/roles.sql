MODEL (
  name ref.roles,
  kind SEED (
    path '../../seeds/roles.csv'
  ),
  columns (
    role_code STRING,
    label STRING,
    family STRING,
    overtime_factor DECIMAL(4, 2)
  ),
  grain role_code,
  audits (
    UNIQUE_VALUES(columns := (role_code)),
    NOT_NULL(columns := (role_code, overtime_factor))
  )
);
