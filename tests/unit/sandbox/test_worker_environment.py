"""The worker's environment: an allow-list, and no credential of the bot under any name."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_bot.bot.sandbox.launch import (
    SandboxedEnvironment,
    SandboxVariables,
    build_sandboxed_environment,
    parse_sandbox_variables,
)
from ci_bot.bot.sandbox.start_command import CONTAINER_PATH, NEVER_PREFIXES
from ci_bot.errors import BadInput

TOKEN = "ghs_" + "0123456789abcdefghijklmnopqrstuvwxyz"
OURS = {
    "PATH": CONTAINER_PATH,
    "HOME": "/private/home",
    "TMPDIR": "/private/tmp",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "PYTHONUTF8": "1",
    "NO_COLOR": "1",
    "TERM": "dumb",
    "COLUMNS": "400",
    "SQLMESH__DISABLE_ANONYMIZED_ANALYTICS": "true",
    "PYSPARK_PYTHON": "/venv/bin/python",
}
RUNNER = {
    "GITHUB_TOKEN": TOKEN,
    "GITHUB_OUTPUT": "/github/file_commands/set_output_x",
    "ACTIONS_RUNTIME_TOKEN": "eyJ-runtime",
    "ACTIONS_ID_TOKEN_REQUEST_URL": "https://oidc.example",
    "RUNNER_TEMP": "/github/runner_temp",
    "INPUT_GITHUB-TOKEN": TOKEN,
    "CI_BOT_SETTINGS": "x",
    "PATH": "utter-nonsense",
    "PYTHONPATH": "/evil",
    "LD_PRELOAD": "/evil.so",
    "HOME": "/github/home",
    "SOME_SECRET": "x",
}


def built(parent: Mapping[str, str], worker_env: str = "", **more: Any) -> SandboxedEnvironment:
    return build_sandboxed_environment(
        parent,
        selection=parse_sandbox_variables(worker_env),
        python="/venv/bin/python",
        home="/private/home",
        temporary="/private/tmp",
        secrets=[TOKEN, "eyJ-runtime", ""],
        **more,
    )


def test_build__nothing_of_the_runner() -> None:
    assert built(RUNNER).variables == OURS


def test_build__what_sqlmesh_spark_java_and_hadoop_read() -> None:
    parent = {
        "SQLMESH__DEFAULT_GATEWAY": "spark",
        "SPARK_HOME": "/opt/spark",
        "PYSPARK_DRIVER_PYTHON": "python3",
        "PYSPARK_PYTHON": "/usr/bin/python3",
        "JAVA_HOME": "/opt/java",
        "HADOOP_CONF_DIR": "/etc/hadoop",
    }
    assert built(RUNNER | parent).variables == OURS | parent


def test_build__analytics_stay_off() -> None:
    parent = {"SQLMESH__DISABLE_ANONYMIZED_ANALYTICS": "false"}
    assert built(parent).variables == OURS


def test_build__names_and_prefixes_that_were_asked_for() -> None:
    parent = {"AWS_REGION": "eu", "AWS_PROFILE": "ci", "DB_PASSWORD": "x", "DB_PASSWORD_2": "y"}
    variables = built(parent, "AWS_*, DB_PASSWORD").variables
    assert variables == OURS | {"AWS_REGION": "eu", "AWS_PROFILE": "ci", "DB_PASSWORD": "x"}


@pytest.mark.parametrize("worker_env", ["G*", "GITHUB*", "R* A* I*", "C*"])
def test_build__short_prefixes_open_no_door(worker_env: str) -> None:
    assert set(built(RUNNER, worker_env).variables) == set(OURS)


@pytest.mark.parametrize(
    "value",
    [
        TOKEN,
        f"https://x-access-token:{TOKEN}@github.com",
        "Basic " + base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode(),
        base64.b64encode(TOKEN.encode()).decode(),
        "eyJ-runtime",
    ],
)
def test_build__the_token_under_another_name(value: str) -> None:
    with pytest.raises(BadInput, match="names MY_VARIABLE") as failure:
        built({"MY_VARIABLE": value}, "MY_VARIABLE")
    assert value not in f"{failure.value.message} {failure.value.hint}"
    by_prefix = built({"MY_VARIABLE": value, "SPARK_X": value}, "MY_*")
    assert by_prefix.variables == OURS
    assert by_prefix.withheld == ("MY_VARIABLE", "SPARK_X")


def test_build__what_the_image_fixes_wins() -> None:
    variables = built({"JAVA_HOME": "/host/java"}, fixed={"JAVA_HOME": "/image/java"}).variables
    assert variables["JAVA_HOME"] == "/image/java"


def test_build__values_do_not_show() -> None:
    assert "hunter22" not in repr(built({"SPARK_PASSWORD": "hunter22"}))


def test_parse__lines_commas_and_doubles() -> None:
    assert parse_sandbox_variables(" A_1,B_*\n\nA_1\tC ") == SandboxVariables(("A_1", "C"), ("B_",))
    assert parse_sandbox_variables("  ") == SandboxVariables()


def test_parse__all_problems_in_one_message() -> None:
    with pytest.raises(BadInput) as failure:
        parse_sandbox_variables("OK, *, a b=c, GITHUB_TOKEN, ACTIONS_*, PATH, x-y, LD_PRELOAD, A*B")
    for entry in (
        "`*`",
        "`b=c`",
        "`GITHUB_TOKEN`",
        "`ACTIONS_*`",
        "`PATH`",
        "`x-y`",
        "`LD_PRELOAD`",
    ):
        assert entry in failure.value.message
    assert "`OK`" not in failure.value.message
    assert failure.value.exit_code == 2


names = st.one_of(
    st.from_regex(r"[A-Z_][A-Z0-9_]{0,12}", fullmatch=True),
    st.sampled_from(sorted(RUNNER)),
    st.sampled_from(NEVER_PREFIXES).map(lambda prefix: f"{prefix}X"),
)
environs = st.dictionaries(names, st.sampled_from(["x", TOKEN, f"a{TOKEN}b", "eyJ-runtime"]))


@given(environs, st.lists(names.map(lambda name: f"{name[:2]}*"), max_size=3))
def test_build__never_a_credential_whatever_is_asked(
    parent: dict[str, str], asked: list[str]
) -> None:
    try:
        variables = built(parent, " ".join(asked)).variables
    except BadInput:
        return
    assert TOKEN not in str(variables)
    assert "eyJ-runtime" not in str(variables)
    assert not [name for name in variables if name.startswith(NEVER_PREFIXES)]
