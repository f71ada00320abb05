model (
  name grid.customer_month,
  kind view,
  dialect spark
);

JINJA_QUERY_BEGIN;
select
  b.customer_no,
  {{ month_of('b.read_on') }} as month_start,
  {% for column in ['kwh', 'energy_charge'] -%}
  sum(b.{{ column }}) as {{ column }},
  {% endfor -%}
  count(distinct b.contract_id) as contracts
from grid.billing_lines as b
group by
  b.customer_no,
  {{ month_of('b.read_on') }}
JINJA_END;
