"""What to do about a state that cannot be read: by the words that drivers really use."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_bot.worker.messages.problems import list_unset_variables_for_state_error, make_state_error

NEWER_DUCKDB = (
    "IO Error: Trying to read a database file with version number 69, but we can only read "
    "versions between 64 and 68.\nThe database file was created with a newer version of DuckDB."
)
NO_HOST = 'could not translate host name "None" to address: Name or service not known\n'


def hint(message: str, *projects: Path, **environ: str) -> str:
    return str(make_state_error(ValueError(message), "postgres", projects, environ).hint)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            NEWER_DUCKDB,
            "Pin prod's version, `duckdb==…`, in the file that the input `requirements`",
        ),
        (NO_HOST, "`None` appears for a variable that is not set"),
        (
            'FATAL:  password authentication failed for user "sqlmesh"',
            "Check the user and the password",
        ),
        ("fe_sendauth: no password supplied", "Check the user and the password"),
        ("(1045, \"Access denied for user 'a'@'b' (using password: NO)\")", "the password in"),
        ('FATAL:  database "state" does not exist', "Check the `database`"),
        (
            'could not translate host name "db.internal" to address: Name or service not known',
            "its name is not known where this runs",
        ),
        ('server at "10.0.0.7", port 5432 failed: Connection refused', "network, firewall, VPN"),
        ('server at "10.0.0.7", port 5432 failed: timeout expired', "network, firewall, VPN"),
        ('server at "10.0.0.7", port 5432 failed: Connection timed out', "network, firewall, VPN"),
        ("IO Error: The file exists, but it is not a valid DuckDB database file!", "no DuckDB"),
        ("No module named 'pymssql'", "Add the driver of this database"),
        ("SSL error: certificate verify failed", "`sslmode` for PostgreSQL"),
        ('no pg_hba.conf entry for host "db", user "bot", no encryption', "`PGSSLROOTCERT`"),
        ('no pg_hba.conf entry for host "db", user "bot", SSL off', "`PGSSLROOTCERT`"),
        ('no pg_hba.conf entry for host "db", user "bot", SSL encryption', "the user and the"),
        ('no pg_hba.conf entry for host "db", user "bot", SSL on', "the user and the"),
        ("something else", "Check the gateway's `state_connection` and that its variables"),
    ],
)
def test_hint__fits_the_cause(message: str, expected: str) -> None:
    assert expected in hint(message)


def test_message__is_the_first_line_of_the_drivers(tmp_path: Path) -> None:
    failure = make_state_error(ValueError(f"\n{NEWER_DUCKDB}"), "duckdb", [tmp_path], {})

    assert failure.message == (
        "The state database (duckdb) cannot be read: IO Error: Trying to read a database file with "
        "version number 69, but we can only read versions between 64 and 68."
    )
    assert (failure.reason_code, failure.exit_code) == ("state_unreachable", 2)


CONFIG = """\
gateways:
  spark:
    connection:
      type: spark
      config:
        spark.hadoop.fs.s3a.access.key: {{ env_var('WAREHOUSE_KEY') }}
    state_connection:
      type: postgres
      host: {{ env_var('STATE_HOST') }}
      port: {{ env_var("STATE_PORT", "5432") }}
      user: {{ env_var( 'STATE_USER' ) }}

      password: "{{ env_var('STATE_PASSWORD') }}"
    test_connection:
      type: duckdb
      database: {{ env_var('TEST_FILE') }}
model_defaults:
  start: {{ env_var('FIRST_DAY') }}
"""


@pytest.mark.parametrize(
    ("file", "text", "environ", "expected"),
    [
        ("config.yaml", CONFIG, {}, ["STATE_HOST", "STATE_PASSWORD", "STATE_USER"]),
        (
            "config.yaml",
            CONFIG,
            {"STATE_HOST": "db", "STATE_USER": "me", "STATE_PASSWORD": ""},
            ["STATE_PASSWORD"],
        ),
        (
            "config.yml",
            "gateways:\n  a:\n    connection:\n      password: {{ env_var('ONLY') }}\n",
            {},
            ["ONLY"],
        ),
        (
            "config.py",
            'host=os.environ.get("H"), user=os.getenv("U", "me"), password=os.environ["P"]',
            {"P": "x"},
            ["H"],
        ),
        ("config.yaml", "gateways: [", {}, []),
        ("other.yaml", CONFIG, {}, []),
    ],
)
def test_variables__of_the_connection_without_a_value(
    tmp_path: Path, file: str, text: str, environ: dict[str, str], expected: list[str]
) -> None:
    (tmp_path / file).write_text(text)

    assert list_unset_variables_for_state_error([tmp_path], environ) == expected


def test_hint__names_the_variable_that_is_not_set(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)

    assert hint(NO_HOST, tmp_path, STATE_USER="me", STATE_PASSWORD="x") == (
        "The variable `STATE_HOST`, which the configuration reads, is empty or not set in this "
        "run: pass it to the worker with the input `worker-env`."
    )


def test_message__names_the_variables_that_are_not_set(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)
    failure = make_state_error(ValueError(NO_HOST), "postgres", [tmp_path], {"STATE_USER": "me"})
    assert str(failure).startswith(
        "The state database (postgres) cannot be read, because `STATE_HOST` and `STATE_PASSWORD` "
        "are not set: could not translate"
    )


def test_locked__names_the_process() -> None:
    failure = make_state_error(
        ValueError("IO Error: Could not set lock on file: Conflicting lock is held (PID 77)"),
        "duckdb",
        [],
        {},
    )

    assert (failure.reason_code, failure.exit_code) == ("state_locked", 3)
    assert "by process 77" in failure.message
