AUDIT (
  name delivered_after_pickup
);

SELECT *
FROM @this_model
WHERE delivered_at < picked_up_at
