"""Rules on files: credentials, .env, seeds, tests, macros, and settings of the configuration."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_bot.worker.rules.files import MODEL_FILE_RULES
from ci_bot.worker.rules.files.credentials import list_credentials_in_file
from ci_bot.worker.sql_effects.effects import OwnObjects
from ci_bot.worker.sql_effects.judgement import JudgedEffect, RenderedStatement, judge_statements
from tests.unit.rules.shop import FILES
from tests.unit.rules.world import change, files, models, rules, seen

# ------------------------------------------------------------------------------- credentials

SECRET_LINES = [
    ("config.yaml", "spark.hadoop.fs.s3a.access.key: AKIA" + "Q3WERTYUIOP2ASDF"),
    ("config.yaml", "      password: hunter22"),
    ("config.yaml", 'password: "correct-horse"'),
    ("config.py", 'password = "super_secret_password"'),
    ("config.py", 'os.environ.get("DB_PASSWORD", "hunter22")'),
    ("config.yaml", "password: \"{{ env_var('DB_PASSWORD', 'hunter22') }}\""),
    ("config.yaml", "uri: postgresql://sqlmesh:hunter22@db.internal/state"),
    (
        "config.yaml",
        'spark.hadoop.javax.jdo.option.ConnectionURL: "jdbc:mysql://h/db?user=a&password=hunter22"',
    ),
    ("models/m.py", 'headers = {"Authorization": "Bearer abcdef0123456789"}'),
    ("models/m.py", 'token="' + "ghp_" + "a1B2c3D4" * 5 + '"'),
    ("models/m.py", 'spark.conf.set("fs.azure.account.key.acct", "Zm9vYmFyYmF6cXV4")'),
    ("keys/deploy.txt", "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEow" + "IBAAKCAQEAabcd" * 4),
    ("README.md", "use sk_live_" + "4f9c2b7d1e8a6053 for now"),
    ("config.yaml", "client_secret: 9sdf8-sdf7-sdf6"),
    (".env", "API_TOKEN=9sdf8sdf7sdf6"),
]
INNOCENT_LINES = [
    ("README.md", "Ask in the data channel for the password of the read-only user."),
    ("config.yaml", "password: \"{{ env_var('METASTORE_PASSWORD', '') }}\""),
    ("config.yaml", "password: \"{{ env_var('METASTORE_PASSWORD') }}\""),
    ("config.yaml", "password: ${DB_PASSWORD}"),
    ("config.yaml", "password:"),
    ("config.yaml", "password: null"),
    ("config.yaml", "private_key_path: /run/secrets/key.pem"),
    ("config.yaml", "secret_scope: analytics"),
    ("config.yaml", "# password: hunter22 was revoked"),
    ("config.py", 'password = os.environ["DB_PASSWORD"]'),
    ("config.py", 'password = os.environ.get("DB_PASSWORD")'),
    ("config.py", "token = get_token(scope)"),
    ("config.py", 'secret = f"{prefix}/password"'),
    ("models/m.sql", "SELECT c.access_token_count AS tokens"),
    ("models/m.sql", "WHERE t.kind = 'password_reset'"),
    ("models/m.py", "tokens = text.split()"),
    ("tests/test_m.yaml", "- {user_id: 1, token: abc123def456}"),
    ("external_models.yaml", "    password_hash: string"),
    ("external_models.yaml", "    token: string"),
    ("config.yaml", "token_expiry: 3600"),
    ("config.yaml", "password: <your password>"),
    ("config.yaml", "api_key: changeme"),
]


@pytest.mark.parametrize(("path", "line"), SECRET_LINES)
def test_secret__is_seen(path: str, line: str) -> None:
    assert list_credentials_in_file(line.splitlines(), 0, path)


@pytest.mark.parametrize(("path", "line"), INNOCENT_LINES)
def test_secret__innocent_line_stays_quiet(path: str, line: str) -> None:
    assert not list_credentials_in_file([line], 0, path)


@given(
    st.text(
        alphabet="abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789", min_size=12, max_size=40
    )
)
def test_secret__value_is_never_repeated(value: str) -> None:
    inputs = files({"config.yaml": "a: 1\n"}, {"config.yaml": f"a: 1\npassword: {value}\n"})

    for finding in seen(inputs):
        assert value not in finding.model_dump_json()


def test_secret__in_a_changed_filter_or_setting_is_hidden() -> None:
    key = "AKIA" + "Q3WERTYUIOP2ASDF"
    uri = "postgresql://sqlmesh:hunter22secret@db/state"
    inputs = change(
        FILES,
        {
            **FILES,
            "models/open_orders.sql": FILES["models/open_orders.sql"].replace("'open'", f"'{key}'"),
        },
        other_before={"config.yaml": "variables: {a: x}\n"},
        other_after={"config.yaml": f"variables: {{a: '{uri}'}}\n"},
        statements=(("before_all", f"SET fs.key = {key}", "added"),),
    )

    found = seen(inputs)

    assert {"filter-changed", "environment-statement", "configuration-changed"} <= {
        f.rule for f in found
    }
    for finding in found:
        assert key not in finding.evidence
        assert "hunter22secret" not in finding.evidence


def test_secret__is_seen_in_added_lines_only() -> None:
    old = "password: hunter22\n"
    inputs = files({"config.yaml": old}, {"config.yaml": f"{old}project: shop\n"})

    assert seen(inputs, "hardcoded-secret") == []


@pytest.mark.parametrize(
    ("path", "rows", "expected"),
    [
        ("seeds/edi.csv", "name;url;password\nedi;https://edi;Tr0mso-2024!edi\n", [2]),
        ("seeds/edi.csv", "name,api_key\na,\nb,9f8a7d6c5b4e3f2a1b0c9d8e7f6a5b4c\n", [3]),
        ("seeds/edi.tsv", "login\tdb_password\nedi\thunter22\n", [2]),
        ("seeds/edi.csv", "name,password\nedi,\n", []),
        ("seeds/edi.csv", "name,password_hash\nedi,9f8a7d6c5b4e3f2a1b0c9d8e7f6a5b4c\n", []),
        ("seeds/logins.csv", "method,password_logins\nsso,12\n", []),
        ("seeds/edi.csv", "name,password\nedi,${EDI_PASSWORD}\n", []),
    ],
)
def test_secret__of_a_column_of_a_seed(path: str, rows: str, expected: list[int]) -> None:
    found = seen(files({}, {path: rows}), "hardcoded-secret")
    assert [one.line for one in found] == expected


@pytest.mark.parametrize(
    ("path", "line", "is_secret"),
    [
        # Without a blank before it, this sign begins no comment.
        (".env.example", "STATE_PASSWORD=vK7#tq9Lz2!mWc4x", True),
        ("config.yaml", "password: vK7#tq9Lz2!mWc4x", True),
        # Only a blank ends a value of a .env file.
        ("deploy/prod.env", "STATE_PASSWORD=vK,7)tq9;Lz2!mWc4x", True),
        (".env.example", "STATE_PASSWORD=# the team's vault has it", False),
        (".env.example", "STATE_PASSWORD=changeme # yours", False),
        (".env.example", "STATE_PASSWORD=${VAULT:?set it}", False),
        (".env.example", "STATE_PASSWORD=<your-password>", False),
        ("a.toml", "token = docs#section", False),
    ],
)
def test_secret__of_a_value_with_signs(path: str, line: str, *, is_secret: bool) -> None:
    found = seen(files({}, {path: f"{line}\n"}), "hardcoded-secret")
    assert [one.severity for one in found] == ["blocker"] * is_secret


def test_secret__points_at_file_and_line() -> None:
    inputs = files({"config.yaml": "a: 1\n"}, {"config.yaml": "a: 1\npassword: hunter22\n"})

    (found,) = seen(inputs, "hardcoded-secret")

    assert (found.severity, found.path, found.line) == ("blocker", "config.yaml", 2)


@pytest.mark.parametrize(
    ("name", "text", "severity"),
    [
        (".env", "DB_PASSWORD=hunter22\n", "blocker"),
        ("deploy/.env.prod", "DB_PASSWORD=hunter22\n", "blocker"),
        (".env", "DB_PASSWORD=\n", "high"),
        (".env", "DEBUG=1\nDB_PASSWORD=changeme\n", "high"),
        (".env.example", "DB_PASSWORD=\n", None),
        ("environment.yaml", "name: x\n", None),
    ],
)
def test_env_file(name: str, text: str, severity: str | None) -> None:
    assert rules(files({}, {name: text})).get("env-file-tracked") == severity


def test_env_file__no_longer_ignored() -> None:
    inputs = files({".gitignore": ".cache/\n.env\n"}, {".gitignore": ".cache/\n"})

    assert rules(inputs) == {"env-file-tracked": "high"}


# ------------------------------------------------------------------------------------- seeds

SEED = """
MODEL (
  name ref.countries,
  kind SEED (path '../seeds/countries.csv'),
  columns (code STRING, region STRING, vat DECIMAL(5, 3)),
  grain code
);
"""
CSV = "code,region,vat\nDE,EU,0.19\nFR,EU,0.20\nGB,UK,0.20\n"


@pytest.fixture
def seeds(tmp_path, monkeypatch):  # type: ignore[no-untyped-def]
    """A change of the CSV file alone, read from where the model says it is."""
    (tmp_path / "models").mkdir()
    (tmp_path / "seeds").mkdir()
    monkeypatch.setattr("tests.unit.rules.world.ROOT", tmp_path)

    def make(after: str | bytes, before: str = CSV):  # type: ignore[no-untyped-def]
        path = tmp_path / "seeds" / "countries.csv"
        path.write_text(CSV)
        inputs = change(
            {"models/countries.sql": SEED},
            {"models/countries.sql": SEED},
            other_before={"seeds/countries.csv": before},
            other_after={"seeds/countries.csv": after},
        )
        path.write_bytes(after.encode() if isinstance(after, str) else after)
        return inputs

    return make


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (CSV + "AT,EU,0.20\n", {}),
        ("\ufeff" + CSV + "AT,EU,0.20\n", {}),
        (CSV.replace("EU", "Europäische Union"), {}),
        (CSV.encode().replace(b"EU", b"\xdcnion"), {"seed-not-utf8": "blocker"}),
        (CSV + "AT,EU\n", {"seed-broken": "high"}),
        (CSV + "AT,EU,0.20,x\n", {"seed-broken": "blocker"}),
        (CSV.replace("code,region", "code,area"), {"seed-broken": "blocker"}),
        (CSV.replace("0.19", "nineteen"), {"seed-broken": "high"}),
        (CSV + "DE,EU,0.19\n", {"seed-keys-changed": "high"}),
        (CSV.replace("DE,", "DEU,").replace("FR,", "FRA,"), {"seed-keys-changed": "high"}),
    ],
)
def test_seed(seeds, after: str | bytes, expected: dict[str, str]) -> None:  # type: ignore[no-untyped-def]
    assert rules(seeds(after), at_least="medium") == expected


KEYED = """MODEL (
  name ref.fees,
  kind SEED (path '../seeds/fees.csv'{settings}),
  columns (tier STRING, least DECIMAL(12, 2), rate DECIMAL(5, 3)),
  grain (tier, least),
  audits (not_null(columns := (rate)), not_null_non_blocking(columns := (tier)))
);"""
FEES = "tier,least,rate\nbasic,0.00,0.019\nbasic,1000.00,0.015\n"


@pytest.mark.parametrize(
    ("after", "settings", "says"),
    [
        (FEES + "basic,1000.0,0.014\n", "", "1 key"),
        (FEES + "basic,1e3,0.014\n", "", "1 key"),
        (FEES.replace("1000.00", "1000"), "", None),
        (FEES + "Basic,1000.00,0.014\n", "", None),
        (FEES + "plus,1000.00,\n", "", "Row 4: `rate` is empty, so it is NULL, and the audit"),
        (FEES + "plus,1000.00, \n", "", "stops the plan"),
        (FEES + ",1000.00,0.014\n", "", "warns"),
        (FEES + "plus,,0.014\n", "", None),
        (FEES + ",1000.00,0.014\n", ", csv_settings (keep_default_na = false)", None),
    ],
)
def test_seed__keys_and_nulls_as_the_table_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: str, settings: str, says: str | None
) -> None:
    for folder in ("models", "seeds"):
        (tmp_path / folder).mkdir()
    monkeypatch.setattr("tests.unit.rules.world.ROOT", tmp_path)
    (tmp_path / "seeds" / "fees.csv").write_text(FEES)
    model = {"models/fees.sql": KEYED.format(settings=settings)}
    path = "seeds/fees.csv"
    inputs = change(model, model, other_before={path: FEES}, other_after={path: after})
    found = [*seen(inputs, "seed-keys-changed"), *seen(inputs, "seed-broken")]
    assert [item.severity for item in found] == ["high"] * (says is not None)
    assert all(str(says) in item.evidence for item in found)


def test_seed__too_many_rows(seeds) -> None:  # type: ignore[no-untyped-def]
    """Only the rules on seeds: the others read a million lines as well, and say nothing of them."""
    inputs = seeds(CSV + "".join(f"{n},EU,0.2\n" for n in range(1_000_001)))

    found = {(seen.spec.id, seen.weight) for rule in MODEL_FILE_RULES for seen in rule(inputs)}

    assert ("seed-too-large", "high") in found


def test_seed__among_very_many_files_and_models__is_found_at_once(seeds) -> None:  # type: ignore[no-untyped-def]
    """With a look at every model for each file this takes minutes."""
    inputs = seeds(CSV.replace("0.19", "nineteen"))
    (model,) = [model for model in inputs.after.values() if model.kind.is_seed]
    models = {f"{model.fqn}{number}": model for number in range(500)}
    paths = (*(f"seeds/s{number}.csv" for number in range(5_000)), "seeds/countries.csv")
    large = replace(inputs, before=models, after=models, changed_files=paths)
    begun = time.process_time()
    assert "seed-broken" in {sight.spec.id for rule in MODEL_FILE_RULES for sight in rule(large)}
    assert time.process_time() - begun < 10


def test_seed__that_does_not_load_is_found_from_prods_model(seeds) -> None:  # type: ignore[no-untyped-def]
    inputs = seeds(CSV.encode() + b"\xdc,EU,0.2\n")
    broken = type(inputs)(**{**inputs.__dict__, "after": {}, "loaded": False})

    (found,) = seen(broken, "seed-not-utf8")

    assert (found.model, found.line) == ("ref.countries", 5)


# ------------------------------------------------------------------------------------- tests

TEST = """
test_revenue:
  model: mart.revenue
  inputs: {stg.orders: {rows: [{customer_id: 1, amount: 2}]}}
  outputs: {query: {rows: [{country: DE, amount: 2}, {country: FR, amount: 3}]}}
"""


def with_test(before: str | None, after: str | None, path: str = "tests/test_revenue.yaml"):  # type: ignore[no-untyped-def]
    return change(
        FILES,
        FILES,
        other_before={path: before} if before else {},
        other_after={path: after} if after else {},
    )


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (None, {"unit-test-removed": "high"}),
        ("test_other:\n  model: stg.orders\n  inputs: {}\n", {"unit-test-removed": "high"}),
        (TEST.replace("test_revenue:", "test_revenue_by_country:"), {}),
        (TEST + "  description: more words\n", {}),
        (TEST.replace("{query:", "{partial: true, query:"), {"unit-test-weakened": "medium"}),
        (TEST.replace(", {country: FR, amount: 3}", ""), {"unit-test-weakened": "medium"}),
        (TEST + "  vars: {execution_time: 1 day ago}\n", {"moving-date-test": "medium"}),
        (TEST + "  vars: {execution_time: today}\n", {"moving-date-test": "medium"}),
        (TEST + "  vars: {execution_time: '2024-01-01'}\n", {}),
        (
            TEST.replace("amount: 2}]}}", "amount: CURRENT_DATE()}]}}"),
            {"moving-date-test": "medium", "unit-test-weakened": "medium"},
        ),
        (TEST.replace("country: DE", "country: Nowhere"), {"unit-test-weakened": "medium"}),
        (TEST.replace("{country: DE, amount: 2}", "{amount: 2, country: DE}"), {}),
    ],
)
def test_unit_test(after: str | None, expected: dict[str, str]) -> None:
    assert rules(with_test(TEST, after)) == expected


def test_unit_test__moved_to_another_file() -> None:
    inputs = change(
        FILES,
        FILES,
        other_before={"tests/test_a.yaml": TEST},
        other_after={"tests/finance/test_a.yaml": TEST},
    )

    assert rules(inputs) == {}


def test_unit_test__of_a_model_that_goes_too() -> None:
    less = {path: text for path, text in FILES.items() if "revenue" not in path}
    inputs = change(FILES, less, other_before={"tests/test_a.yaml": TEST})

    assert "unit-test-removed" not in rules(inputs)


# ------------------------------------------------------------------------------------ macros


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('return "1"', {}),
        ('return open("x.sql").read()', {}),
        ('open("x.log", "w").write("x")', {"macro-side-effect": "high"}),
        (
            "import requests\n    return requests.get('https://x').text",
            {"macro-side-effect": "high"},
        ),
        ("import subprocess\n    subprocess.run(['ls'])", {"macro-side-effect": "high"}),
        ("evaluator.engine_adapter.execute('DROP TABLE x')", {"macro-side-effect": "high"}),
        (
            "from datetime import datetime as d\n    return d.now().isoformat()",
            {"current-time": "high"},
        ),
        ("import random\n    return str(random.random())", {"random": "high"}),
        ("import random\n    random.seed(4)\n    return str(random.random())", {}),
    ],
)
def test_macro(body: str, expected: dict[str, str]) -> None:
    source = f"from sqlmesh import macro\n\n@macro()\ndef f(evaluator):\n    {body}\n"

    assert rules(files({"macros/f.py": "x = 1\n"}, {"macros/f.py": source})) == expected


# ------------------------------------------------------------------------------ configuration

CONFIG = """
project: shop
gateways:
  spark:
    connection:
      type: spark
      catalog: spark_catalog
      config:
        spark.app.name: shop
        spark.sql.session.timeZone: UTC
    state_connection:
      type: postgres
      host: db
default_gateway: spark
model_defaults:
  dialect: spark
  start: '2023-01-01'
  owner: shop
linter:
  enabled: true
  rules: [ambiguousorinvalidcolumn, invalidselectstarexpansion]
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("project: shop\n", "", {"project-key-changed": "high"}),
        ("dialect: spark", "dialect: duckdb", {"default-dialect-changed": "high"}),
        ("catalog: spark_catalog", "catalog: lake", {"gateway-changed": "high"}),
        ("type: spark\n", "type: databricks\n", {"gateway-changed": "high"}),
        ("host: db", "host: other", {"state-connection-changed": "high"}),
        ("default_gateway: spark", "default_gateway: lake", {"gateway-changed": "high"}),
        ("enabled: true", "enabled: false", {"linter-off": "high"}),
        (", invalidselectstarexpansion", "", {"linter-off": "high"}),
        ("enabled: true", "enabled: true\n  ignored_rules: [all]", {"linter-off": "high"}),
        ("rules: [", "rules: [nomissingaudits, ", {}),
        ("timeZone: UTC", "timeZone: Asia/Tokyo", {"spark-setting-changed": "high"}),
        ("app.name: shop", "app.name: shop2", {}),
        ("app.name: shop", "hadoop.javax.jdo.option.ConnectionPassword: x", {}),
        (
            "app.name: shop",
            "hadoop.javax.jdo.option.ConnectionURL: jdbc:x",
            {"spark-setting-changed": "high"},
        ),
        ("owner: shop", "owner: ana", {}),
        ("start: '2023-01-01'", "start: '2024-01-01'", {"model-default-changed": "high"}),
        ("start: '2023-01-01'", "start: '2020-01-01'", {"model-default-changed": "medium"}),
        ("owner: shop", "on_destructive_change: allow", {"model-default-changed": "high"}),
        (
            "linter:",
            "physical_schema_mapping: {'^a$': b}\nlinter:",
            {"physical-schema-changed": "high"},
        ),
        ("linter:", "physical_table_naming_convention: hash_md5\nlinter:", {}),
        (
            "linter:",
            "plan: {auto_categorize_changes: {sql: 'off'}}\nlinter:",
            {"plan-setting-changed": "high"},
        ),
        ("linter:", "plan: {forward_only: true}\nlinter:", {"plan-setting-changed": "high"}),
        ("linter:", "snapshot_ttl: in 1 day\nlinter:", {"configuration-changed": "medium"}),
        ("linter:", "variables: {x: 1}\nlinter:", {}),
        ("linter:", "# a comment\nlinter:", {}),
        (
            "type: postgres\n      host: db",
            "type: duckdb\n      database: s.db",
            {"state-connection-changed": "high", "single-writer-state": "medium"},
        ),
    ],
)
def test_configuration(old: str, new: str, expected: dict[str, str]) -> None:
    assert old in CONFIG
    inputs = files({"config.yaml": CONFIG}, {"config.yaml": CONFIG.replace(old, new)})

    assert rules(inputs, at_least="medium") == expected


def test_configuration__a_secret_setting_is_not_shown() -> None:
    old = CONFIG + "cicd_bot: {token: a}\n"
    new = CONFIG.replace("host: db", "host: db\n      password: \"{{ env_var('P') }}\"")

    for finding in seen(files({"config.yaml": old}, {"config.yaml": new})):
        assert "env_var" not in finding.evidence


GATEWAY = "gateways:\n  spark:\n    connection:\n      type: spark\n      {}\nmodel_defaults:\n  dialect: spark\n"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("connect_timeout: 10", "connect_timeout: 30", {}),
        ("disable_spark_session: true", "disable_spark_session: false", {}),
        ("sslmode: prefer", "sslmode: require", {}),
        ("retries: 3", "retries: 5", {}),
        ("catalogs: {timeout: a.db}", "catalogs: {timeout: b.db}", {"gateway-changed": "high"}),
        ("timezone: UTC", "timezone: Asia/Tokyo", {"configuration-changed": "high"}),
        ("collation: a", "collation: b", {"configuration-changed": "high"}),
        (
            "session_properties: {a: b}",
            "session_properties: {a: c}",
            {"configuration-changed": "high"},
        ),
        (
            "session_configuration: {x.y: 1}",
            "session_configuration: {x.y: 2}",
            {"spark-setting-changed": "medium"},
        ),
        (
            "session_configuration: {spark.sql.session.timeZone: UTC}",
            "session_configuration: {spark.sql.session.timeZone: Asia/Tokyo}",
            {"spark-setting-changed": "high"},
        ),
        (
            "session_configuration: {spark.sql.shuffle.partitions: 1}",
            "session_configuration: {spark.sql.shuffle.partitions: 2}",
            {},
        ),
        ("wap_enabled: false", "wap_enabled: true", {"configuration-changed": "medium"}),
        ("keepalives_idle: 1", "keepalives_idle: 5", {}),
        ("user: ana", "user: bo", {"gateway-changed": "medium"}),
        ("impersonation_user: ana", "impersonation_user: bo", {"gateway-changed": "medium"}),
        ("keyfile: a.json", "keyfile: b.json", {"gateway-changed": "medium"}),
        ("auth_type: a", "auth_type: b", {}),
        ("http_path: /sql/1", "http_path: /sql/2", {"gateway-changed": "high"}),
        ("http_headers: {a: b}", "http_headers: {a: c}", {"gateway-changed": "high"}),
        ("a_setting_of_tomorrow: 1", "a_setting_of_tomorrow: 2", {"gateway-changed": "high"}),
        (
            "catalogs: {lake: {path: a.db}}",
            "catalogs: {lake: {path: b.db}}",
            {"gateway-changed": "high"},
        ),
        (
            "secrets: {s3: {endpoint: a}}",
            "secrets: {s3: {endpoint: b}}",
            {"gateway-changed": "high"},
        ),
        ("port: 1  # {# old #}", "port: 1", {}),
        ("port: 1", "port: 2", {"gateway-changed": "high"}),
        (
            """host: "{{ env_var('A') }}\"""",
            """host: "{{ env_var('B') }}\"""",
            {"gateway-changed": "high"},
        ),
        ("""host: "{{ env_var('A') }}\"""", """host: "{{  env_var('A')  }}\"""", {}),
    ],
)
def test_connection__a_setting_that_names_no_place_is_no_other_place(
    old: str, new: str, expected: dict[str, str]
) -> None:
    sides = [{"config.yaml": GATEWAY.format(one)} for one in (old, new)]
    assert rules(files(*sides), at_least="medium") == expected


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("variables: {x: %s}", {}),
        ("model_defaults: {start: 202%s-01-01}", {"model-default-changed": "high"}),
        ("model_defaults: {owner: a%s}", {}),
    ],
)
def test_gateway__its_variables_and_defaults_are_no_other_place(
    setting: str, expected: dict[str, str]
) -> None:
    sides = [{"config.yaml": f"gateways:\n  spark:\n    {setting % number}\n"} for number in (1, 2)]
    assert rules(files(*sides), at_least="medium") == expected


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("a", "{% if env_var('A') %}a{% else %}b{% endif %}", "from `a` to a template"),
        ("db", "'{{ env_var(\"A\") }}'", "from `db` to a template"),
        ("'{{ x }}'", "'{{ y }}'", "from a template to another template"),
        ("'{{ x }}.eu'", "'{{ x }}.us'", "from `{{ … }}.eu` to `{{ … }}.us`"),
        ("'{{ x }}.eu'", "'{{ y }}.eu'", "from `{{ … }}.eu` to another template"),
    ],
)
def test_connection__a_template_is_called_one(before: str, after: str, says: str) -> None:
    sides = [{"config.yaml": GATEWAY.format(f"host: {one}")} for one in (before, after)]
    (finding,) = seen(files(*sides))
    assert says in finding.evidence
    assert "jinja" not in finding.evidence


STARTING = {
    "an extension": "test_connection: {type: duckdb, extensions: [shellfs]}",
    "an extension from elsewhere": (
        "test_connection: {type: duckdb, extensions: [{name: shellfs, repository: community}]}"
    ),
    "unsigned extensions": (
        "connection: {type: duckdb, connector_config: {allow_unsigned_extensions: true}}"
    ),
    "a statement in a setting": (
        "connection: {type: duckdb, connector_config: {threads: \"1'; LOAD 'x\"}}"
    ),
    "a statement in a secret": "connection: {type: duckdb, secrets: [{type: \"s3'; LOAD 'x\"}]}",
    "a file system": "connection: {type: duckdb, filesystems: [{fs: gs}]}",
    "a driver": "connection: {type: mssql, driver_name: ./odbc.so}",
    "an identity provider": "connection: {type: redshift, credentials_provider: ours.Provider}",
    "a directory of Spark's settings": "connection: {type: spark, config_dir: ./conf}",
    "jars": "connection: {type: spark, config: {spark.jars: lib/ours.jar}}",
    "packages": "connection: {type: spark, config: {spark.jars.packages: 'com:ours:1'}}",
    "a class path": "connection: {type: spark, config: {spark.driver.extraClassPath: lib}}",
    "an agent": "connection: {type: spark, config: {spark.driver.extraJavaOptions: '-javaagent:a.jar'}}",
    "another Python": "connection: {type: spark, config: {spark.pyspark.python: ./python}}",
    "the state's connection": "state_connection: {type: duckdb, extensions: [shellfs]}",
}
HARMLESS_SETTINGS = {
    "memory": "connection: {type: duckdb, connector_config: {memory_limit: 2GB}}",
    "a secret": "connection: {type: duckdb, secrets: [{type: s3, region: eu-1}]}",
    "tasks": "connection: {type: spark, concurrent_tasks: 8}",
    "options for Java": "connection: {type: spark, config: {spark.driver.extraJavaOptions: -Xss4m}}",
    "a class of Spark's own": "connection: {type: spark, config: {spark.serializer: org.x.Kryo}}",
    "memory of a driver": "connection: {type: spark, config: {spark.driver.memory: 4g}}",
    "nothing": "connection: {type: duckdb, extensions: []}",
}


@pytest.mark.parametrize("setting", STARTING.values(), ids=STARTING)
def test_setting__that_starts_code(setting: str) -> None:
    text = f"gateways:\n  local:\n    {setting}\n"

    assert (
        rules(files({"config.yaml": CONFIG}, {"config.yaml": text}))["setting-runs-code"] == "high"
    )
    assert rules(files({}, {"config.yaml": text}))["setting-runs-code"] == "high", "a new project"
    (line,) = [f.line for f in seen(files({}, {"config.yaml": text}), "setting-runs-code")]
    assert line == 3


@pytest.mark.parametrize("setting", HARMLESS_SETTINGS.values(), ids=HARMLESS_SETTINGS)
def test_setting__that_starts_nothing(setting: str) -> None:
    text = f"gateways:\n  local:\n    {setting}\n"

    assert "setting-runs-code" not in rules(files({"config.yaml": CONFIG}, {"config.yaml": text}))


def test_setting__that_starts_code_already__is_not_held_against_the_change() -> None:
    text = f"gateways:\n  local:\n    {STARTING['jars']}\n"
    edited = f"{text}    # and more\nsnapshot_ttl: in 1 week\n"

    found = rules(files({"config.yaml": text}, {"config.yaml": edited}))
    assert "setting-runs-code" not in found


def test_setting__variables_for_every_program() -> None:
    text = "env_vars:\n  JAVA_TOOL_OPTIONS: -javaagent:a.jar\n"

    assert rules(files({}, {"config.yaml": text}))["setting-runs-code"] == "high"


def test_configuration__of_another_directory_is_not_read() -> None:
    inputs = files(
        {"docs/config.yaml": CONFIG}, {"docs/config.yaml": "project: x\n"}, projects=("analytics",)
    )

    assert rules(inputs) == {}


def test_configuration__that_does_not_parse_is_left_to_the_load() -> None:
    assert rules(files({"config.yaml": CONFIG}, {"config.yaml": "a: b\n c: d: e\n"})) == {}


# -------------------------------------------------------------------- statements and audits


def around(sql: str, *, in_prod: bool = False) -> tuple[JudgedEffect, ...]:
    """What a before_all statement does to others, for an environment with a schema of its own."""
    own = OwnObjects("pr_1", "spark_catalog", schemas=frozenset({("spark_catalog", "mart__pr_1")}))
    statement = RenderedStatement("before_all", None, sql, sql, "spark")
    return tuple(replace(item, in_prod=in_prod) for item in judge_statements([statement], own))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("DROP SCHEMA IF EXISTS old CASCADE", {"destructive-statement": "blocker"}),
        ("TRUNCATE TABLE x.y", {"destructive-statement": "blocker"}),
        ("DELETE FROM x.y WHERE a = 1", {"destructive-statement": "blocker"}),
        ("/* x */ INSERT INTO log.runs SELECT 1", {"destructive-statement": "blocker"}),
        ("GRANT SELECT ON SCHEMA mart TO analysts", {"destructive-statement": "blocker"}),
        ("GRANT SELECT ON SCHEMA mart__pr_1 TO analysts", {"destructive-statement": "high"}),
        ("ALTER TABLE x.y ADD COLUMN z INT", {"destructive-statement": "blocker"}),
        ("ADD JAR /x.jar", {"code-in-sql": "blocker"}),
        ("SET spark.sql.ansi.enabled = true", {"session-setting": "high"}),
        ("SET TIME ZONE 'Asia/Tokyo'", {"session-setting": "high"}),
        ("SET `spark`.`sql`.`ansi`.`enabled` = TRUE", {"session-setting": "blocker"}),
        ("SET spark.sql.shuffle.partitions = 10", {"environment-statement": "medium"}),
        ("CREATE TEMPORARY VIEW t AS SELECT 1", {"environment-statement": "medium"}),
    ],
)
def test_environment_statement(sql: str, expected: dict[str, str]) -> None:
    inputs = files({}, {}, statements=(("before_all", sql, "added"),), judged=around(sql))

    assert rules(inputs) == expected


@pytest.mark.parametrize(
    ("when", "change", "expected"),
    [
        ("after_all", "removed", "high"),
        ("before_all", "removed", "medium"),
        ("after_all", "added", "medium"),
    ],
)
def test_environment_statement__that_readers_need_after_each_deployment(
    when: str, change: str, expected: str
) -> None:
    inputs = files({}, {}, statements=((when, "@grant_readers(@this_env)", change),))

    assert rules(inputs) == {"environment-statement": expected}


def test_environment_statement__that_was_there_is_told_and_no_more() -> None:
    sql = "DROP TABLE x.y"
    inputs = files(
        {}, {}, statements=(("before_all", sql, "unchanged"),), judged=around(sql, in_prod=True)
    )

    (found,) = seen(inputs)

    assert (found.rule, found.severity) == ("standing-statement", "low")
    assert "drops `x.y`" in found.evidence


def test_statement__that_the_base_has_and_prod_has_not_is_for_a_person() -> None:
    model = change({}, FILES).after['"spark_catalog"."mart"."revenue"']
    own = OwnObjects("pr_1", "spark_catalog")
    statement = RenderedStatement(
        "post-statement", model.fqn, "DROP TABLE x.y", "DROP TABLE x.y", "spark"
    )
    inputs = change(FILES, FILES, judged=tuple(judge_statements([statement], own)))

    (own_doing,) = seen(inputs, "destructive-statement")
    (from_base,) = seen(replace(inputs, from_base=frozenset({model.fqn})), "destructive-statement")

    assert (own_doing.severity, from_base.severity) == ("blocker", "high")
    assert "an apply is refused until prod has caught up" in from_base.evidence
    assert own_doing.path == "models/revenue.sql"


def test_statement__that_runs_in_prod_only_says_so() -> None:
    sql = "INSERT INTO ops.log SELECT 1"
    found = tuple(replace(item, environment="prod") for item in around(sql))

    (told,) = seen(files({}, {}, judged=found))

    assert "in prod, and not in a PR environment" in told.evidence


AUDIT = "AUDIT (name a_total, dialect spark);\nSELECT * FROM @this_model WHERE amount < 0"
AUDITED = {
    "models/o.sql": "MODEL (name stg.o, kind FULL, grain order_id, audits (a_total, not_null(columns := (order_id))));"
    "SELECT o.order_id, o.amount FROM raw.orders AS o"
}


@pytest.mark.parametrize(
    ("audit", "severity"),
    [
        (AUDIT.replace("dialect spark", "dialect spark, skip true"), "high"),
        (AUDIT.replace("dialect spark", "dialect spark, blocking false"), "high"),
        (AUDIT.replace("amount < 0", "amount < -1000"), "high"),
        (AUDIT.replace("amount < 0", "amount < 10"), None),
        (AUDIT.replace("amount < 0", "amount < 0 OR amount IS NULL"), None),
        (AUDIT.replace("amount < 0", "amount < 0 AND order_id > 7"), "high"),
        (AUDIT.replace("amount < 0", "amount < 0 AND order_id > 7 OR amount IS NULL"), "high"),
        (AUDIT.replace("amount < 0", "order_id < 0"), "high"),
        (AUDIT.replace("WHERE amount", "WHERE  amount"), None),
    ],
)
def test_own_audit__weakened(audit: str, severity: str | None) -> None:
    inputs = change(AUDITED, AUDITED, audits_before=AUDIT, audits_after=audit)

    assert rules(inputs).get("weakened-audit") == severity


MOST = "AUDIT (name a_total, dialect spark, defaults (most = {}));\nSELECT * FROM @this_model WHERE amount > @most"
CALLED = AUDITED["models/o.sql"]


@pytest.mark.parametrize(
    ("before", "after", "severity"),
    [
        (("a_total", 20), ("a_total(least := 1)", 2_000), "high"),
        (("a_total", 20), ("a_total(most := 20)", 2_000), None),
        (("a_total(most := 20)", 5), ("a_total", 20), None),
        (("a_total(most := 20)", 5), ("a_total(most := 30)", 5), "high"),
        (("a_total(most := 20)", 5), ("a_total(most := 10)", 5), None),
        (("a_total", 20), ("a_total, a_total(most := 9)", 20), None),
    ],
)
def test_own_audit__with_another_value(
    before: tuple[str, int], after: tuple[str, int], severity: str | None
) -> None:
    inputs = change(
        {"models/o.sql": CALLED.replace("a_total", before[0])},
        {"models/o.sql": CALLED.replace("a_total", after[0])},
        audits_before=MOST.format(before[1]),
        audits_after=MOST.format(after[1]),
    )

    assert rules(inputs).get("weakened-audit") == severity


@pytest.mark.parametrize(
    ("after", "weight"),
    [
        (MOST.format(2_000), ["high"]),
        (MOST.format(5), []),
        (MOST.format(20).replace("defaults (most = 20)", "defaults  (most  =  20)"), []),
        (MOST.format(2_000) + ";\n" + MOST.format(1).replace("a_total", "b"), ["high"]),
    ],
)
def test_own_audit__whose_default_is_no_change_to_sqlmesh(after: str, weight: list[str]) -> None:
    """No hash of SQLMesh's holds it: prod keeps the old one, whatever is merged."""
    inputs = files({"audits/own.sql": MOST.format(20)}, {"audits/own.sql": after})
    found = seen(inputs, "weakened-audit")
    assert [item.severity for item in found] == weight
    assert all("once the model itself changes" in item.evidence for item in found)


NO_CHECK = "AUDIT (name unique_values);\nSELECT * FROM @this_model WHERE FALSE"


@pytest.mark.parametrize(
    ("before", "after", "number"),
    [
        (None, NO_CHECK, 1),
        (None, NO_CHECK.replace("unique", "UNIQUE"), 1),
        (None, NO_CHECK.replace("unique_values", "not_null_non_blocking"), 1),
        (None, MOST.format(1) + ";\n" + NO_CHECK, 1),
        (NO_CHECK, NO_CHECK.replace("FALSE", "NULL"), 1),
        (NO_CHECK, NO_CHECK.replace(")", ", blocking false)"), 1),
        (None, NO_CHECK.replace("unique_values", "unique_orders"), 0),
        (NO_CHECK, NO_CHECK.replace("SELECT", "\n  SELECT") + " ;\n", 0),
        (NO_CHECK, NO_CHECK + ";\n" + MOST.format(1), 0),
        (NO_CHECK, None, 0),
    ],
)
def test_own_audit__that_has_the_name_of_one_of_sqlmeshs(
    before: str | None, after: str | None, number: int
) -> None:
    """It takes that one's place in each model, and no hash of SQLMesh's holds it."""
    path = "audits/own.sql"
    inputs = files(*({} if text is None else {path: text} for text in (before, after)))
    found = seen(inputs, "weakened-audit")
    assert [(item.severity, item.path) for item in found] == [("high", path)] * number


@pytest.mark.parametrize(
    ("before", "after", "severity"),
    [
        (
            "accepted_values(column := status, is_in := ('a', 'b'))",
            "accepted_values(column := status, is_in := ('a'))",
            None,
        ),
        (
            "accepted_values(column := status, is_in := ('a'))",
            "accepted_values(column := status, is_in := ('a', 'b'))",
            "high",
        ),
        (
            "accepted_range(column := amount, min_v := 0)",
            "accepted_range(column := amount, min_v := 5)",
            None,
        ),
        (
            "accepted_range(column := amount, min_v := 0)",
            "accepted_range(column := amount, min_v := -5)",
            "high",
        ),
        (
            "accepted_range(column := amount, max_v := 10)",
            "accepted_range(column := amount, max_v := 20)",
            "high",
        ),
        ("number_of_rows(threshold := 10)", "number_of_rows(threshold := 100)", None),
        ("number_of_rows(threshold := 100)", "number_of_rows(threshold := 10)", "high"),
        (
            "accepted_range(column := amount, min_v := 0)",
            "accepted_range(column := amount, min_v := 0, condition := status = 'a')",
            "high",
        ),
        (
            "accepted_range(column := amount, min_v := 0, condition := status = 'a')",
            "accepted_range(column := amount, min_v := 0)",
            None,
        ),
        (
            "accepted_range(column := amount, min_v := 0)",
            "accepted_range(column := amount, min_v := 0, condition := TRUE)",
            None,
        ),
        (
            "unique_values(columns := (amount), condition := status = 'a' OR amount > 3)",
            "unique_values(columns := (amount), condition := status = 'a')",
            "high",
        ),
        (
            "unique_values(columns := (amount), condition := status = 'a')",
            "unique_values(columns := (amount), condition := status = 'a' OR amount > 3)",
            None,
        ),
    ],
)
def test_builtin_audit__with_other_arguments(before: str, after: str, severity: str | None) -> None:
    text = (
        "MODEL (name stg.o, kind FULL, grain order_id, audits (not_null(columns := (order_id)), {}));"
        "SELECT o.order_id, o.amount, o.status FROM raw.orders AS o"
    )
    inputs = change({"models/o.sql": text.format(before)}, {"models/o.sql": text.format(after)})

    assert rules(inputs).get("weakened-audit") == severity


ALL_ROWS = "{}(columns := ({}))"
SOME_ROWS = "{}(columns := ({}), condition := order_ts < '2024-06-01')"
PROMISES = {
    "not_null(amount)": ("not_null", "amount"),
    "unique(order_id)": ("unique_values", "order_id"),
    "unique(amount, order_id)": ("unique_combination_of_columns", "order_id, amount"),
}


def audited_as(call: str) -> dict[str, str]:
    return {
        "models/o.sql": f"MODEL (name stg.o, kind FULL, audits ({call}));\n"
        "SELECT o.order_id, o.amount, o.order_ts FROM raw.orders AS o"
    }


@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("kept", ["", "_non_blocking"])
def test_builtin_audit__with_a_condition_checks_less_and_is_not_gone(
    promise: str, kept: str
) -> None:
    name, columns = PROMISES[promise]
    every = audited_as(ALL_ROWS.format(name + kept, columns))
    some = audited_as(SOME_ROWS.format(name + kept, columns))

    inputs = change(every, some)
    assert rules(inputs)["weakened-audit"] == "high"
    assert "removed-audit" not in rules(inputs)
    (found,) = seen(inputs, "weakened-audit")
    assert f"`{promise} is checked for rows with order_ts < '2024-06-01' only`" in found.evidence
    assert not {"weakened-audit", "removed-audit"} & rules(change(some, every)).keys()


def test_builtin_audit__whose_condition_is_true_checks_every_row() -> None:
    every = audited_as(ALL_ROWS.format("not_null", "amount"))
    written = audited_as("not_null(columns := (amount), condition := true)")

    for inputs in (change(every, written), change(written, every)):
        assert not {"weakened-audit", "removed-audit"} & rules(inputs).keys()


def test_standalone_audit__removed() -> None:
    text = "AUDIT (name nightly, standalone true);\nSELECT 1 FROM stg.orders WHERE FALSE;"

    assert rules(files({"audits/nightly.sql": text}, {})) == {"removed-audit": "high"}


def test_external_model__without_audits_is_information() -> None:
    more = {"raw.crew": {"crew_id": "BIGINT"}}
    inputs = change(FILES, FILES)
    grown = type(inputs)(
        **{**inputs.__dict__, "after": {**inputs.after, **models({}, external=more)}}
    )

    assert rules(grown) == {"external-without-audits": "info"}


def test_findings__of_very_many_files__are_counted_and_not_all_listed() -> None:
    """An answer that holds them all is too large to be taken, and then nothing is told at all."""
    many = {f"conf/a{number:05}.yaml": f"password: hunter{number}\n" for number in range(1_200)}
    found = seen(files({}, many), "hardcoded-secret")
    assert len(found) == 1_001
    assert {item.severity for item in found} == {"blocker"}
    assert [item.evidence for item in found if item.path is None] == [
        "200 more findings of this rule, not listed."
    ]


@pytest.mark.parametrize(
    ("copied_from", "severity"), [(("ops/dev.py",), "medium"), ((), "blocker")]
)
def test_secret__that_is_copied_from_a_file_that_stays_is_the_bases(
    copied_from: tuple[str, ...], severity: str
) -> None:
    old = {"ops/dev.py": 'DB_PASSWORD = "Harbour-42-Lantern"\n', "config.yaml": "a: 1\n"}
    new = old | {"config.yaml": "a: 1\npassword: Harbour-42-Lantern\n"}
    (found,) = seen(files(old, new, copied_from=copied_from), "hardcoded-secret")
    assert found.severity == severity
    assert ("the base branch holds the same value already" in found.evidence) is bool(copied_from)


def test_secret__beside_one_that_is_copied_is_new() -> None:
    old = {"ops/dev.py": 'DB_PASSWORD = "Harbour-42-Lantern"\n', "config.yaml": "a: 1\n"}
    new = old | {"config.yaml": "password: Harbour-42-Lantern\nb:\n  password: Quarry-77-Falcon\n"}
    found = seen(files(old, new, copied_from=("ops/dev.py",)), "hardcoded-secret")
    assert sorted(item.severity for item in found) == ["blocker", "medium"]
