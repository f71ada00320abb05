"""Templates that only write text, told from those that may run something."""

from __future__ import annotations

import pytest

from ci_bot.bot.decision.template_tags import is_jinja_template_harmless

HARMLESS = [
    "SELECT {{ safe_hash(['a', 'b']) }} AS id",
    "{{ pkg.hash('a') }}",
    "{{ env_var('SCHEMA', 'dev') }}.{{ var('table') }}",
    "{% macro cents(column, scale=2) %}({{ column }} / 100)::NUMERIC(16, {{ scale }}){% endmacro %}",
    "{% for c in columns %}{{ c.name | lower }}{% if not loop.last %},{% endif %}{% endfor %}",
    "{% set names = ['a', 'b'] %}{{ names | join(', ') }} {{ names[0] }} {{ names[-1] }}",
    "{% set n = namespace(found=false) %}{% set n.found = true %}{{ n.found }}",
    "{% call box('x') %}inside{% endcall %}",
    "{% do names.append('c') %}{% for n in names %}{% break %}{% endfor %}",
    "{{ {'a': 1}['a'] }} {{ 'abc'[1:] }} {{ 1 if x is defined else 2 }}",
    "{# nothing {{ x.__class__ }} #}",
    "{% raw %}{{ x.__class__ }}{% endraw %}",
    "{{ ref('orders') }} {{ source('raw', 'orders') }}",
]
RUNS = [
    "{{ ''.__class__ }}",
    "{{ ''['__class__'] }}",
    "{{ ''[x] }}",
    "{{ ''['__cl' ~ 'ass__'] }}",
    "{{ '' | attr('__class__') }}",
    "{{ [''] | map(attribute='__class__') | list }}",
    "{{ [''] | map('upper') | list }}",
    "{{ xs | sum('__class__') }}",
    "{{ xs | sort(attribute='__class__') }}",
    "{{ xs | join(',', '__class__') }}",
    "{{ xs | join(attribute='__class__') }}",
    "{{ xs | groupby('__class__') }}",
    "{{ '{0.__class__}'.format(x) }}",
    "{{ x.gi_frame.f_builtins }}",
    "{{ x.mro() }}",
    "{{ lipsum.__globals__ }}",
    "{{ self }}",
    "{{ _private }}",
    "{{ f(*[x]) }}",
    "{{ f(**x) }}",
    "{{ adapter.execute('DROP TABLE x') }}",
    "{{ run_query('DROP TABLE x') }}",
    "{% call statement('x') %}DROP TABLE x{% endcall %}",
    "{{ modules.re.sub('a', 'b', 'c') }}",
    "{% include 'other' %}",
    "{% import 'other' as o %}",
    "{% extends 'other' %}",
    "{% docs a %}{% enddocs %}",
    "{% set ns._x = 1 %}",
    "{{ x | unknown_filter }}",
    "{% filter attr('__class__') %}x{% endfilter %}",
    "{{",
    "{{ " + "(" * 5_000 + " }}",
    # Nested too deeply to be walked through.
    "{{ a" + ".b" * 60_000 + " }}",
    "{{ a" + "()" * 60_000 + " }}",
    "{{ 1" + "+1" * 60_000 + " }}",
]


@pytest.mark.parametrize("template", HARMLESS)
def test_harmless(template: str) -> None:
    assert is_jinja_template_harmless(template)


@pytest.mark.parametrize("template", RUNS, ids=lambda text: text[:40])
def test_what_may_run_something(template: str) -> None:
    assert not is_jinja_template_harmless(template)
