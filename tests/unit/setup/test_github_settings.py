"""Secrets and variables on GitHub: what is secret, which account a job gets, what it does without."""

from __future__ import annotations

import pytest

from ci_bot.bot.cli.setup.github_settings import (
    UNUSED,
    SetupJob,
    SetupLevel,
    is_setup_variable_secret,
    list_github_settings,
    list_optional_settings,
    list_worker_env,
)
from ci_bot.bot.cli.setup.read_configuration import (
    SetupConfigVariable,
    VariablePurpose,
    read_python_config,
    read_yaml_config,
)
from ci_bot.redaction import Redactor
from tests.setup_layouts import IN_PYTHON, ROOT, SPARK_ON_POSTGRES


def of(text: str) -> list[SetupConfigVariable]:
    read = read_python_config if "import" in text else read_yaml_config
    configuration = read(text)
    return configuration.list_variables_of(configuration.default_gateway)


def values(text: str, level: SetupLevel, job: SetupJob) -> dict[str, str]:
    return {each.name: each.value for each in list_github_settings(of(text), level, job)}


@pytest.mark.parametrize(
    ("name", "key", "secret"),
    [
        ("STATE_PASSWORD", "", True),
        ("STATE_PW", "password", True),
        ("ANYTHING", "password", True),
        ("LAKE_TOKEN", "", True),
        ("AWS_SECRET_ACCESS_KEY", "", True),
        ("DATABASE_URL", "", True),
        ("STATE_DSN", "", True),
        ("PG_CONNECTION_STRING", "", True),
        ("STATE_HOST", "host", False),
        ("WAREHOUSE_METASTORE", "spark.hadoop.hive.metastore.uris", False),
        ("SPARK_MASTER_URL", "", False),
        ("PASSWORD_FILE", "", False),
        ("STATE_USER", "user", False),
    ],
)
def test_secret__is_seen_by_name_and_setting(name: str, key: str, secret: bool) -> None:
    assert is_setup_variable_secret(SetupConfigVariable(name, "other", key)) is secret


def test_review__needs_no_secret_and_nothing_of_a_yaml_configuration() -> None:
    assert values(SPARK_ON_POSTGRES, "review", "review") == {}


def test_review__gives_words_to_a_configuration_that_fails_without() -> None:
    assert values(IN_PYTHON, "review", "review") == dict.fromkeys(
        ("DB_HOST", "DB_PASSWORD", "DB_USER", "LAKE_TOKEN"), UNUSED
    )


@pytest.mark.parametrize("scope", ["state", "warehouse", "other"])
def test_review__a_number_stays_one(scope: VariablePurpose) -> None:
    found = list_github_settings(
        [SetupConfigVariable("PG_PORT", scope, "port")], "review", "review"
    )
    assert [each.value for each in found] == (
        ["${{ vars.PG_PORT || '1' }}"] if scope == "other" else ['"1"']
    )


def test_review__models_may_read_what_is_no_connection() -> None:
    found = list_github_settings([SetupConfigVariable("SCHEMA", "other")], "review", "review")
    assert [each.value for each in found] == ["${{ vars.SCHEMA || 'not-needed-by-reviews' }}"]


def test_review__its_words_hide_nothing_in_a_comment() -> None:
    """What the project gets is taken out of every text, and nobody writes these on their own."""
    redactor = Redactor([UNUSED, "1"])
    for page in (ROOT / "docs" / "rules").glob("*.md"):
        text = page.read_text("utf-8")
        assert redactor.redact(text) == Redactor([]).redact(text)
    assert redactor.redact("1 unused column, not needed") == "1 unused column, not needed"


def test_apply__the_review_reads_and_the_apply_writes() -> None:
    assert values(SPARK_ON_POSTGRES, "apply", "review") == {
        "PG_HOST": "${{ vars.PG_HOST }}",
        "PG_PASSWORD": "${{ secrets.PG_READER_PASSWORD }}",
        "PG_USER": "${{ vars.PG_READER }}",
    }
    writes = values(SPARK_ON_POSTGRES, "apply", "apply")
    assert writes == {
        "PG_HOST": "${{ vars.PG_HOST }}",
        "PG_PASSWORD": "${{ secrets.PG_WRITER_PASSWORD }}",
        "PG_USER": "${{ vars.PG_WRITER }}",
        "LAKE_TOKEN": "${{ secrets.LAKE_TOKEN }}",
    }
    assert values(SPARK_ON_POSTGRES, "apply", "cleanup") == writes


def test_apply__the_review_gets_a_word_for_the_warehouse_that_it_never_reaches() -> None:
    found = values(IN_PYTHON, "apply", "review")
    assert found["LAKE_TOKEN"] == UNUSED
    assert found["DB_PASSWORD"] == "${{ secrets.DB_READER_PASSWORD }}"


def test_deploy__has_secrets_of_its_own_for_the_warehouse() -> None:
    found = values(SPARK_ON_POSTGRES, "full", "deploy")
    assert found["LAKE_TOKEN"] == "${{ secrets.PROD_LAKE_TOKEN }}"


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("DATABASE_URL", "", "secrets.DATABASE_READER_URL"),
        ("PGUSER", "user", "vars.PGUSER_READER"),
        ("PGPASSWORD", "password", "secrets.PGPASSWORD_READER"),
        ("STATE_LOGIN", "", "vars.STATE_READER"),
    ],
)
def test_account__has_two_names_however_it_is_called(name: str, key: str, value: str) -> None:
    (found,) = list_github_settings([SetupConfigVariable(name, "state", key)], "apply", "review")
    assert found.value == f"${{{{ {value} }}}}"


@pytest.mark.parametrize("name", ["GITHUB_TOKEN", "HOME", "USER", "CI", "RUNNER_TEMP", "PATH"])
def test_machine__what_is_its_own_is_no_setting(name: str) -> None:
    variables = [SetupConfigVariable(name, "other")]
    assert list_github_settings(variables, "full", "apply") == []
    assert (
        list_optional_settings([SetupConfigVariable(name, "other", has_default=True)], "apply")
        == []
    )


def test_worker_env__names_families_by_their_prefix() -> None:
    variables = of(SPARK_ON_POSTGRES)
    settings = list_github_settings(variables, "apply", "apply")
    assert list_worker_env(settings, variables) == ["PG_*", "LAKE_TOKEN"]


def test_worker_env__leaves_out_what_always_passes() -> None:
    variables = [
        SetupConfigVariable("SPARK_HOME", "other"),
        SetupConfigVariable("SQLMESH_X", "other"),
    ]
    assert list_worker_env(list_github_settings(variables, "apply", "apply"), variables) == []


def test_optional__of_a_review_has_nothing_of_the_warehouse() -> None:
    variables = [
        SetupConfigVariable("PG_PORT", "state", has_default=True),
        SetupConfigVariable("LAKE_PORT", "warehouse", has_default=True),
    ]
    assert list_optional_settings(variables, "review") == ["PG_PORT"]
    assert list_optional_settings(variables, "apply") == ["PG_PORT", "LAKE_PORT"]
