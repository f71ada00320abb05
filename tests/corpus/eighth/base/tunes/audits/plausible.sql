AUDIT (
  name royalties_are_plausible
);

SELECT * FROM @this_model WHERE amount < 0 OR amount > plays * 0.01;

AUDIT (
  name at_least_one_row
);

SELECT 1 AS empty WHERE (SELECT COUNT(*) FROM @this_model) = 0;

AUDIT (
  name valid_mail_hash
);

SELECT * FROM @this_model WHERE NOT mail_hash RLIKE '^[0-9a-f]{64}$'
