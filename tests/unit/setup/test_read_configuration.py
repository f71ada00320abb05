"""What a configuration says, read without loading it: variables, where they are used, gateways."""

from __future__ import annotations

import pytest

from ci_bot.bot.cli.setup.read_configuration import (
    SetupConfigVariable,
    SetupProjectConfiguration,
    read_python_config,
    read_yaml_config,
)
from tests.setup_layouts import DUCKDB, IN_PYTHON, ROOT, SPARK_ON_POSTGRES


def by_name(
    configuration: SetupProjectConfiguration, gateway: str | None = None
) -> dict[str, SetupConfigVariable]:
    return {
        each.name: each
        for each in configuration.list_variables_of(gateway or configuration.default_gateway)
    }


def test_yaml__variables_know_what_they_are_for() -> None:
    found = by_name(read_yaml_config(SPARK_ON_POSTGRES))
    assert {name: (each.scope, each.key) for name, each in found.items()} == {
        "LAKE_TOKEN": ("warehouse", "spark.hadoop.token"),
        "PG_HOST": ("state", "host"),
        "PG_PASSWORD": ("state", "password"),
        "PG_PORT": ("state", "port"),
        "PG_USER": ("state", "user"),
    }
    assert [name for name, each in found.items() if each.has_default] == ["PG_PORT"]
    assert not any(each.is_required for each in found.values())


def test_yaml__of_the_company_has_all_of_its_variables() -> None:
    configuration = read_yaml_config((ROOT / "examples/company/config.yaml").read_text("utf-8"))
    found = by_name(configuration)
    assert len(found) == 15
    assert {each.scope for name, each in found.items() if name.startswith("STATE_")} == {"state"}
    assert {each.scope for name, each in found.items() if name[:2] == "WA"} == {"warehouse"}
    assert (configuration.default_gateway, configuration.find_state_type("cluster")) == (
        "cluster",
        "postgres",
    )
    assert configuration.engine_type("cluster") == "spark"


@pytest.mark.parametrize(
    ("line", "has_default"),
    [
        ("\"{{ env_var('X') }}\"", False),
        ("{{ env_var( 'X' ) }}", False),
        ('"{{ env_var(\'X\', "y") }}"', True),
        ("\"{{ env_var('X') or 'y' }}\"", True),
        ("\"{{ env_var('X') | default('y') }}\"", True),
        ("\"prefix/{{ env_var('X') }}/rest\"", False),
        ("'{% if env_var(\"X\") %}a{% endif %}'", False),
    ],
)
def test_yaml__each_spelling_of_a_variable_is_seen(line: str, has_default: bool) -> None:
    (found,) = read_yaml_config(f"variables:\n  schema: {line}\n").variables
    assert (found.name, found.scope, found.has_default) == ("X", "other", has_default)


def test_yaml__comments_name_no_variable() -> None:
    text = f"{DUCKDB}# password: {{{{ env_var('NOT_READ') }}}}\n{{# {{{{ env_var('NOR_THIS') }}}} #}}\n"
    configuration = read_yaml_config(text)
    assert (configuration.variables, configuration.is_whole) == ((), True)


def test_yaml__of_another_gateway_is_left_out() -> None:
    text = """\
gateways:
  prod:
    connection: {type: spark, token: "{{ env_var('PROD_TOKEN') }}"}
  dev:
    connection: {type: duckdb, database: "{{ env_var('DEV_FILE') }}"}
"""
    configuration = read_yaml_config(text)
    assert configuration.gateways == ("prod", "dev")
    assert set(by_name(configuration)) == {"PROD_TOKEN"}
    assert set(by_name(configuration, "dev")) == {"DEV_FILE"}


def test_yaml__an_engine_that_holds_the_state_is_the_state() -> None:
    text = "gateways:\n  pg:\n    connection:\n      type: postgres\n      password: {{ env_var('P') }}\n"
    configuration = read_yaml_config(text)
    assert configuration.find_state_type("pg") == "postgres"
    assert by_name(configuration)["P"].scope == "state"
    spark = read_yaml_config(text.replace("postgres", "spark"))
    assert spark.find_state_type("pg") is None
    assert by_name(spark)["P"].scope == "warehouse"


def test_yaml__one_gateway_without_a_name_and_defaults_of_all() -> None:
    text = "default_connection:\n  type: spark\n  token: {{ env_var('T') }}\nstate_connection: {type: mysql}\n"
    configuration = read_yaml_config(text)
    assert (configuration.gateways, configuration.engine_type(None)) == ((), "spark")
    assert by_name(configuration)["T"].scope == "warehouse"


def test_yaml__anchors_that_go_round_in_circles_end() -> None:
    assert read_yaml_config("a: &a\n  b: *a\n  c: {{ env_var('X') }}\n").variables[0].name == "X"


def test_yaml__that_no_parser_takes_still_gives_its_variables() -> None:
    configuration = read_yaml_config(
        "a: [b\n  c: {{ env_var('X') }}\n# {{ env_var('NOT_READ') }}\n"
    )
    assert not configuration.is_whole
    assert [each.name for each in configuration.variables] == ["X"]


def test_python__names_are_read_where_they_are_used() -> None:
    configuration = read_python_config(IN_PYTHON)
    found = by_name(configuration)
    assert {name: (each.scope, each.key) for name, each in found.items()} == {
        "DB_HOST": ("state", "host"),
        "DB_PASSWORD": ("state", "password"),
        "DB_PORT": ("state", "port"),
        "DB_USER": ("state", "user"),
        "DIALECT": ("other", "dialect"),
        "LAKE_TOKEN": ("warehouse", "spark.token"),
    }
    assert {name for name, each in found.items() if each.has_default} == {"DB_PORT", "DIALECT"}
    assert {name for name, each in found.items() if each.is_required} == {
        *("DB_HOST", "DB_PASSWORD", "DB_USER", "LAKE_TOKEN")
    }
    assert configuration.gateways == ("prod", "local")
    assert (configuration.engine_type("prod"), configuration.find_state_type("prod")) == (
        "spark",
        "postgres",
    )
    assert configuration.bot_keys == ("merge_method", "enable_deploy_command")


def test_python__of_another_gateway_is_needed_where_the_file_fails_without_it() -> None:
    text = """\
config = Config(gateways={
    "a": GatewayConfig(connection=SparkConnectionConfig()),
    "b": GatewayConfig(connection=SparkConnectionConfig(token=os.environ["HARD"])),
    "c": GatewayConfig(connection=SparkConnectionConfig(token=os.getenv("SOFT"))),
})
"""
    found = by_name(read_python_config(text), "a")
    assert {name: each.scope for name, each in found.items()} == {"HARD": "other"}


def test_python__what_is_set_or_no_variable_is_left_out() -> None:
    text = "os.environ['SET'] = 'x'\nother['Y']\ngetenv(name)\nprint(os.environ)\n"
    assert read_python_config(text).variables == ()


def test_python__that_does_not_parse_says_so() -> None:
    assert not read_python_config("config = Config(\n").is_whole
