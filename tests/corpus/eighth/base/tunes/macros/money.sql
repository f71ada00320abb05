{% macro spend(column) %}COALESCE(SUM({{ column }}), 0){% endmacro %}
