{% macro month_of(column) %}cast(date_trunc('month', {{ column }}) as date){% endmacro %}
