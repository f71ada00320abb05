MODEL (
  name core.parts,
  kind SCD_TYPE_2_BY_COLUMN (unique_key part_no, columns (name, family, weight_g)),
  grain (part_no, valid_from),
  audits (not_null(columns := (part_no)))
);

SELECT p.part_no, p.name, p.family, p.weight_g FROM raw.parts AS p
