MODEL (
  name freight_int.dwell,
  kind FULL,
  grain container_no
);

SELECT
  w.container_no,
  DATEDIFF(CAST(w.gate_out_at AS DATE), CAST(w.discharged_at AS DATE)) AS dwell_days,
  GREATEST(DATEDIFF(CAST(w.gate_out_at AS DATE), CAST(w.discharged_at AS DATE)) - @VAR('demurrage_free_days'), 0) AS demurrage_days
FROM freight_int.moves_wide AS w
WHERE
  NOT w.discharged_at IS NULL AND NOT w.gate_out_at IS NULL
