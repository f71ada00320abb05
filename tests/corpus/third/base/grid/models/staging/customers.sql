model (
  name grid.customers,
  kind full,
  grain customer_key
);

select
  sha2(c.customer_no, 256) as customer_key,
  c.zone,
  substring(c.zone, 1, 2) as region,
  split(c.email, '@')[1] as email_domain,
  c.moved_in
from crm.customers as c
