AUDIT (name no_heavy_wagons, standalone true);

SELECT * FROM core.wagons AS w WHERE w.tare_kg > 90000 AND w.valid_to IS NULL
