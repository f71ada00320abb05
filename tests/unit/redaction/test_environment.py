"""Every value that reaches the project's code is a secret, unless its name is harmless."""

from __future__ import annotations

import base64
import json

import pytest

from ci_bot.bot.sandbox.launch import make_redactor_for_sandbox
from ci_bot.redaction.known_secrets import is_harmless_beside_secrets, list_secret_values
from tests.unit.redaction.leaks import pem

WORKFLOW = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/home/runner",
    "USER": "runner",
    "SQLMESH__GATEWAYS__LAKE__STATE_CONNECTION__PASSWORD": "hunter22",
    "SQLMESH__GATEWAYS__LAKE__STATE_CONNECTION__HOST": "db.internal.acme",
    "SQLMESH__GATEWAYS__LAKE__STATE_CONNECTION__TYPE": "postgres",
    "SQLMESH__DEFAULT_GATEWAY": "lakehouse",
    "SPARK_LAKE_KEY": "Spark-Key-123",
    "PYSPARK_SUBMIT_ARGS": "--conf spark.x.password=foo12bar pyspark-shell",
    "HADOOP_USER_NAME": "hdfs-writer",
    "JAVA_HOME": "/opt/java-17",
    "STATE_PASSWORD": "48219755",
    "STATE_USER": "state_reader_rw",
    "STATE_HOST": "state.internal.acme",
    "STATE_PORT": "5432",
    "STATE_DATABASE": "warehouse",
    "STATE_SSL": "true",
    "AWS_KEY": "/Zt7abcdefghijklmnopqrstuvwxyzABCDEFG123",
    "EXTRA_NOTE": "nothing-to-see",
}


def shown(text: str, worker_env: str = "STATE_* AWS_KEY", **more: str) -> str:
    return make_redactor_for_sandbox({**WORKFLOW, **more}, worker_env=worker_env).redact(text)


@pytest.mark.parametrize(
    "name",
    [
        "SQLMESH__GATEWAYS__LAKE__STATE_CONNECTION__PASSWORD",
        "SPARK_LAKE_KEY",
        "PYSPARK_SUBMIT_ARGS",
        "HADOOP_USER_NAME",
        "STATE_PASSWORD",
        "STATE_USER",
        "STATE_HOST",
        "AWS_KEY",
    ],
)
def test_value__that_the_project_gets_is_hidden(name: str) -> None:
    assert shown(f"cannot connect with {WORKFLOW[name]} here") == "cannot connect with *** here"


@pytest.mark.parametrize(
    "name",
    [
        *("PATH", "HOME", "USER", "JAVA_HOME", "STATE_PORT", "STATE_DATABASE", "STATE_SSL"),
        *("SQLMESH__DEFAULT_GATEWAY", "SQLMESH__GATEWAYS__LAKE__STATE_CONNECTION__TYPE"),
        "EXTRA_NOTE",
    ],
)
def test_value__of_a_harmless_name_or_of_nobody_is_shown(name: str) -> None:
    text = f"it is {WORKFLOW[name]} here"
    assert shown(text) == text


def test_value__is_hidden_in_capitals_and_in_small_letters() -> None:
    secret = WORKFLOW["SPARK_LAKE_KEY"]
    assert (
        shown(f"a {secret.lower()} b {secret.upper()} c {secret.swapcase()}") == "a *** b *** c ***"
    )


def test_value__is_judged_by_its_name_and_never_by_its_form() -> None:
    values = ["/starts/with/a/slash", "0123456789", "./relative", "~/home", "True-ish", "[a, b]"]
    for value in values:
        assert shown(f"<{value}>", STATE_X=value) == "<***>"


def test_secret__of_the_bot_itself_is_hidden_without_being_passed() -> None:
    assert shown("is ghs-like-but-short", CI_BOT_GITHUB_TOKEN="ghs-like-but-short") == "is ***"


def test_worker_env__that_cannot_be_read_hides_what_passes_by_itself() -> None:
    assert shown("hunter22 and 48219755", worker_env="!!") == "*** and ***"


def test_laptop__hides_by_name_and_leaves_the_rest() -> None:
    environ = {
        "PATH": "/usr/local/bin",
        "USER": "ann-smith",
        "EDITOR": "vim-gtk3",
        "SSH_AUTH_SOCK": "/run/user/1000/keyring/ssh",
        "WAREHOUSE_PASSWORD": "hunter22",
        "DATABASE_URL": "postgresql://bot:p%40ss-w0rd@db/state",
        "KUBECONFIG": "/home/ann-smith/.kube/config",
        "GOOGLE_APPLICATION_CREDENTIALS": "/home/ann-smith/gcp.json",
    }
    text = " ".join(environ.values()) + " p@ss-w0rd"
    redacted = make_redactor_for_sandbox(environ, worker_env="").redact(text)
    assert redacted == text.replace("hunter22", "***").replace("p%40ss-w0rd", "***").replace(
        "p@ss-w0rd", "***"
    )


# --- values that hold more than a secret ----------------------------------------------------------

KEY_LINE = pem().splitlines()[2]
ACCOUNT = {
    "type": "service_account",
    "project_id": "acme-prod",
    "private_key_id": "0123456789abcdef0123456789abcdef01234567",
    "private_key": pem() + "\n",
    "client_email": "bot@acme-prod.iam.gserviceaccount.com",
    "token_uri": "https://oauth2.googleapis.com/token",
    "universe_domain": "googleapis.com",
}
STRUCTURED = {
    "URL": ("postgresql://bot:p%40ss-w0rd@db.internal/state", ["p%40ss-w0rd", "p@ss-w0rd"]),
    "URL with a slash": ("postgresql://bot:pa/ss-w0rd@db.internal/state", ["pa/ss-w0rd"]),
    "URL without a user": ("redis://:hunter22@cache:6379/0", ["hunter22"]),
    "libpq": ("host=h user=bot password='a b c1' dbname=d", ["a b c1"]),
    "JDBC": ("jdbc:sqlserver://h:1433;user=bot;password=hunter22;encrypt=true", ["hunter22"]),
    "ODBC": ("Driver={ODBC Driver 18};Server=h;Uid=bot;Pwd=hunter22;", ["hunter22"]),
    "Azure": (
        "AccountName=lake;AccountKey=abcDEF0123456789xyz==;Suffix=x",
        ["abcDEF0123456789xyz=="],
    ),
    "Java options": (
        "-Dspark.master=yarn -Dspark.hadoop.fs.s3a.secret.key=Abc123/xyz -Xmx2g",
        ["Abc123/xyz"],
    ),
    "spark-submit": ("--conf spark.x.password=foo12bar --master yarn", ["foo12bar"]),
    "a list of settings": ("spark.app.name=shop,spark.x.secret=Abc123/xyz", ["Abc123/xyz"]),
    "spark-defaults": ("spark.hadoop.fs.s3a.secret.key   Abc123/xyz\nspark.a  b", ["Abc123/xyz"]),
    "YAML": ("user: bot\npassword: hunter22\nhost: db-host\n", ["hunter22"]),
    "JSON": (json.dumps(ACCOUNT), [KEY_LINE, ACCOUNT["private_key_id"]]),
    "JSON in base64": (base64.b64encode(json.dumps(ACCOUNT).encode()).decode(), [KEY_LINE]),
    "JSON in JSON": (json.dumps({"a": json.dumps({"password": "hunter22"})}), ["hunter22"]),
    "a number in JSON": ('{"user": "u", "password": 12345678}', ["12345678"]),
    "netrc": ("machine h login bot password p4sswordx", ["p4sswordx"]),
    "key": (pem(), [KEY_LINE]),
}


@pytest.mark.parametrize("kind", STRUCTURED)
@pytest.mark.parametrize("name", ["SPARK_EXTRA", "HOME_DATABASE"])
def test_part__of_a_structured_value_is_hidden_by_itself(kind: str, name: str) -> None:
    """Also where the name says that the value as a whole is harmless."""
    value, parts = STRUCTURED[kind]
    if name == "HOME_DATABASE" and kind == "key":
        return  # not structured: as a whole it is what its name says
    redactor = make_redactor_for_sandbox({name: value}, worker_env="HOME_*")
    for part in parts:
        assert redactor.redact(f"with {part} it fails") == "with *** it fails"
        assert redactor.redact(f"with {part.lower()} it fails") == "with *** it fails"


def test_part__that_is_no_secret_is_shown() -> None:
    text = (
        f"{ACCOUNT['client_email']} {ACCOUNT['project_id']} {ACCOUNT['token_uri']} service_account"
    )
    assert (
        make_redactor_for_sandbox({"SPARK_SA": json.dumps(ACCOUNT)}, worker_env="").redact(text)
        == text
    )


def test_parts__of_what_nobody_passes_are_named_secrets_only() -> None:
    context = json.dumps({"sha": "a94a8fe5ccb19ba61c4c0873d391e987982fbbd3", "token": "hunter22"})
    values = set(list_secret_values({"GITHUB_CONTEXT": context}, lambda _name: False))
    assert values == {"hunter22"}


@pytest.mark.parametrize(
    ("name", "harmless"),
    [
        ("JAVA_HOME", True),
        ("JAVA_HOME_17_X64", True),
        ("SPARK_CONF_DIR", True),
        ("LC_CTYPE", True),
        ("STATE_REGION", True),
        ("STATE_SECRET_DIR", False),
        ("STATE_TOKEN_TYPE", False),
        ("STATE_USER", False),
        ("STATE_HOST", False),
        ("WEBHOOK_PATH", False),
        ("SPARK_OPTS", False),
        ("X", False),
    ],
)
def test_name__is_harmless(name: str, harmless: bool) -> None:
    assert is_harmless_beside_secrets(name) is harmless
