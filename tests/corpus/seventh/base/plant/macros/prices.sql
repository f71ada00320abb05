{% macro net_price(column) %}
{% if var('with_tax') == 'yes' %}{{ column }} / 1.19{% else %}{{ column }}{% endif %}
{% endmacro %}
