AUDIT (name plausible_delay);

SELECT * FROM @this_model WHERE @column > 1440 OR @column < -60
