"""The project's configuration, key by key: the effects of changed settings on models and data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from ci_bot.protocol.plan import Severity
from ci_bot.protocol.rules import RuleSpec, find_rule
from ci_bot.redaction import is_name_of_secret, redact_shapes, shorten_redacted
from ci_bot.worker.rules.files.configuration import (
    CONFIRM,
    STAND_IN,
    does_file_spell_default,
    iterate_changed_configurations,
    judge_other_setting_in_file,
    list_lower_case_words_of_setting,
)
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.observation import RuleObservation, find_anchor_line
from ci_bot.worker.rules.registry import on_file, on_project
from ci_bot.worker.sql_effects import find_effect_of_setting

_FOR_EVERY_MODEL = "it holds for every model without its own"

# The effect of a changed setting, key by key.


PROJECT_KEY = find_rule("project-key-changed")
DIALECT = find_rule("default-dialect-changed")
GATEWAY = find_rule("gateway-changed")
STATE = find_rule("state-connection-changed")
LINTER = find_rule("linter-off")
NAMING = find_rule("naming-convention-changed")
SCHEMA = find_rule("physical-schema-changed")
DEFAULTS = find_rule("model-default-changed")
SPARK = find_rule("spark-setting-changed")
PLAN = find_rule("plan-setting-changed")
OTHER = find_rule("configuration-changed")

SETTINGS = (
    PROJECT_KEY, DIALECT, GATEWAY, STATE, LINTER, NAMING, SCHEMA, DEFAULTS, SPARK, PLAN, OTHER,
)  # fmt: skip

_SHARED_DEFAULTS = frozenset({"owner", "description", "tags"})

# Settings of SQLMesh's connections in 0.227 to 0.236. A setting that is in none of these sets names
# a host, a catalog, a database or the like, or it is unknown and may name one.
#
# Time-outs, retries, concurrency, and the library of the connection.
_OF_THE_CONNECTION = frozenset({
    "concurrent_tasks", "pre_ping", "pretty_sql", "register_comments", "check_import",
    "connect_timeout", "timeout", "login_timeout", "login_attempts", "send_receive_timeout",
    "retries", "job_retries", "job_retry_deadline_seconds", "job_creation_timeout_seconds",
    "job_execution_timeout_seconds", "keepalives_idle", "tcp_keepalive", "connection_pool_options",
    "application", "application_name", "appname", "source", "compression_method",
    "use_compression", "autocommit", "tds_version", "local_infile", "maximum_bytes_billed",
    "priority", "reservation", "quota_project", "ip_type", "http_proxy", "https_proxy",
    "sanitize_mutual_error_response", "disable_spark_session", "disable_databricks_connect",
    "force_databricks_connect",
})  # fmt: skip
# Encryption of the connection to the same server.
_OF_ENCRYPTION = frozenset({
    "sslmode", "ssl", "ssl_disabled", "ssl_ca", "ssl_cert", "ssl_key", "tls_mode", "secure",
    "verify", "cert", "ca_cert", "client_cert", "client_cert_key", "client_certificate", "encrypt",
    "encrypted", "trust_server_certificate", "http_scheme",
})  # fmt: skip
_SIGNS_IN_AS = frozenset({
    "user", "username", "role", "roles", "db_user", "preferred_role", "role_arn", "delegate",
    "role_session_name", "principal", "principal_arn", "impersonation_user", "client_id",
    "impersonated_service_account", "oauth_client_id", "keyfile",
})  # fmt: skip
_HOW_SIGNED_IN = frozenset({
    "auth_type", "authenticator", "method", "iam", "enable_iam_auth", "scopes", "keytab",
    "krb5_config", "mutual_authentication", "force_preemptive", "token_uri",
})  # fmt: skip
# Settings that can change values; in a mapping, each key can.
_OF_VALUES = frozenset({
    "timezone", "timestamp_mapping", "charset", "collation", "session_parameters",
    "session_properties", "connection_settings", "connector_config", "conn_properties",
    "odbc_properties", "query_limit",
})  # fmt: skip
# Settings for the way in which SQLMesh writes or alters tables.
_OF_WRITING = frozenset({
    "enable_merge", "wap_enabled", "schema_differ_overrides", "catalog_type_overrides",
})  # fmt: skip
# Mappings that hold settings of Spark.
_SESSIONS = frozenset({"config", "session_configuration"})

# The rule, the severity if it is not the rule's, the effect, and the condition that clears it.
SettingJudgement = tuple[RuleSpec, Severity | None, str, str]


def judge_setting_in_file(  # noqa: PLR0911 - one line for each kind of setting reads best
    parts: list[str], before: Any, after: Any
) -> SettingJudgement | None:
    head = parts[0]
    if head == "project":
        return (
            PROJECT_KEY,
            None,
            "in a shared state it marks the models of this project, so all of them may look "
            "removed or new, and models of others may be removed",
            CONFIRM,
        )
    if head == "model_defaults":
        return _judge_default(parts, before, after)
    if head in {"gateways", "gateway"}:
        return _judge_gateway(parts, before, after)
    if head in {"default_gateway", "default_connection"}:
        return GATEWAY, None, "every model runs in another place", CONFIRM
    if head in {"state_connection", "default_state_connection", "state_schema"}:
        return _judge_state()
    if head == "linter":
        return _judge_linter(parts, before, after)
    if head == "physical_table_naming_convention":
        return (
            NAMING,
            None,
            "tables that are built from now on are named so; stored snapshots keep their names",
            "nobody looks physical tables up by name",
        )
    if head in {"physical_schema_mapping", "physical_schema_override"}:
        return SCHEMA, None, "matching models get new fingerprints and are built again", CONFIRM
    if head in {
        "environment_suffix_target", "environment_catalog_mapping", "virtual_environment_mode",
        "gateway_managed_virtual_layer",
    }:  # fmt: skip
        return SCHEMA, None, "views and environments move to other names", CONFIRM
    if head == "default_target_environment":
        effect = "a plan or run that names no environment, also one by night, goes there"
        return SCHEMA, None, effect, CONFIRM
    if head == "plan":
        return _judge_plan(parts, after)
    if head in {"before_all", "after_all"}:
        return None  # the statements themselves are judged
    name = parts[1] if len(parts) > 1 else ""
    return OTHER, *judge_other_setting_in_file(head, before, after, name=name)


def _judge_default(parts: list[str], before: Any, after: Any) -> SettingJudgement:
    name = parts[1] if len(parts) > 1 else ""
    if name == "dialect":
        return (
            DIALECT,
            None,
            "models without a dialect of their own are read differently; division, functions and "
            "quotes may mean other things",
            "the rendered queries are the same, or each model names its dialect",
        )
    if name in _SHARED_DEFAULTS:
        return OTHER, "info", "metadata of all models without their own", "nothing to do"
    earlier = (
        name == "start" and before is not None and after is not None and (str(after) < str(before))
    )
    if (
        name in {"cron", "batch_concurrency", "ignored_rules"}
        or earlier
        or (before is None and (name == "start"))
    ):
        return DEFAULTS, "medium", _FOR_EVERY_MODEL, CONFIRM
    return DEFAULTS, None, _FOR_EVERY_MODEL, CONFIRM


def _judge_gateway(  # noqa: PLR0911 - one line for each part of a gateway reads best
    parts: list[str], before: Any, after: Any
) -> SettingJudgement | None:
    rest = parts[2:] if parts[0] == "gateways" else parts[1:]
    if not rest:
        return GATEWAY, None, "the gateway itself comes or goes", CONFIRM
    if rest[0] == "state_connection" and rest[-1] in _OF_THE_CONNECTION:
        return _judge_connection(rest[-1], rest[-1])
    if rest[0] in {"state_connection", "state_schema"}:
        return _judge_state()
    if rest[0] == "test_connection":
        return OTHER, "low", "unit tests run on another engine", "the tests still mean the same"
    if rest[0] == "variables":
        return OTHER, *judge_other_setting_in_file("variables")
    if rest[0] == "model_defaults":
        return _judge_default(rest, before, after)
    if len(rest) > 2 and rest[1] in _SESSIONS:  # noqa: PLR2004 - connection, mapping, key
        return _judge_session(".".join(rest[2:]), before if after is None else after)
    # A nested key belongs to a setting with a known meaning: `catalogs`, `session_properties`.
    return _judge_connection(rest[1] if len(rest) > 1 else rest[0], rest[-1])


def _judge_session(name: str, value: Any) -> SettingJudgement:
    meaning = find_effect_of_setting(name, str(value))
    if meaning in ("values", "places"):
        return SPARK, None, "the same query gives other results, or writes elsewhere", CONFIRM
    if meaning == "unknown":
        of_sql = name.lower().startswith("spark.sql.")
        return SPARK, None if of_sql else "medium", "nobody here knows what it changes", CONFIRM
    return OTHER, "info", "a setting of the session", "nothing to do"


def _judge_connection(  # noqa: PLR0911 - one line for each kind of setting reads best
    name: str, last: str
) -> SettingJudgement:
    """Judges a setting of a connection.

    Args:
        name: SQLMesh's setting.
        last: The key in it that differs; the same as `name` if the setting is one value.
    """
    if name in _OF_THE_CONNECTION:
        return OTHER, "info", "a setting of the connection", "nothing to do"
    if name in _OF_ENCRYPTION:
        return OTHER, "low", "how the connection to the same server is secured", CONFIRM
    if name in _SIGNS_IN_AS:
        return GATEWAY, "medium", "the connection signs in as someone else", CONFIRM
    if name in _HOW_SIGNED_IN or is_name_of_secret(last):
        return OTHER, "info", "how the connection signs in", "nothing to do"
    if name in _OF_VALUES:
        return OTHER, "high", "the same query may give other values there", CONFIRM
    if name in _OF_WRITING:
        return OTHER, "medium", "tables are written or altered there in another way", CONFIRM
    return GATEWAY, None, "models are named for, or built in, another place", CONFIRM


def _judge_state() -> SettingJudgement:
    return (
        STATE,
        None,
        "an empty state knows no prod, so everything looks new and is built again",
        "the state has been moved with its contents",
    )


def _judge_linter(parts: list[str], before: Any, after: Any) -> SettingJudgement:
    name = parts[1] if len(parts) > 1 else ""
    if name == "enabled" or not name:
        off = after is False or after is None
        return (
            LINTER,
            None if off else "info",
            "no model is checked any more" if off else "models are checked from now on",
            "the linter is on",
        )
    old, new = list_lower_case_words_of_setting(before), list_lower_case_words_of_setting(after)
    loosened = bool(new - old) if name == "ignored_rules" else bool(old - new)
    if name == "warn_rules":
        return LINTER, "medium" if loosened else "info", "which rules warn", "a reviewer agrees"
    return (
        LINTER,
        None if loosened else "info",
        "fewer rules stop a plan" if loosened else "more rules are checked",
        "the rules are back, or a reviewer agrees",
    )


def _judge_plan(parts: list[str], after: Any) -> SettingJudgement:
    name = parts[1] if len(parts) > 1 else ""
    if name == "forward_only" and after is True:
        return (
            PLAN,
            "high",
            "every later change of a model is forward-only, so history is not computed again, and "
            "one table holds rows of the old and the new logic",
            CONFIRM,
        )
    if name == "auto_categorize_changes" and str(after).lower() in {"off", "false"}:
        return (
            PLAN,
            "high",
            "such changes wait for somebody who says what they are, and a plan that asks nobody "
            "fails",
            CONFIRM,
        )
    if name in {"always_recreate_environment", "enable_preview"} and after is True:
        return PLAN, None, "it changes what every plan computes", CONFIRM
    return PLAN, None, "it changes how every plan is made", CONFIRM


SINGLE_WRITER = find_rule("single-writer-state")
SHOWN = 80
SETTINGS_SHOWN = 4

Setting = tuple[str, Any, Any]


@on_file(*SETTINGS)
def find_settings_changed_in_files(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds every changed setting of a YAML file, with its effect."""
    for path, old, new in iterate_changed_configurations(inputs):
        text = inputs.read_text_after(path) or ""
        if old is None or new is None:
            continue  # new projects have nothing to compare; broken files fail the load
        added = _list_added_gateways(old, new)
        settings = [
            (key, old.get(key), new.get(key))
            for key in sorted(old.keys() | new.keys())
            if old.get(key) != new.get(key) and _parse_gateway_name(key) not in added
        ]
        yield from _list_observations_on_settings(settings, path, text)
        for name in sorted(added):
            yield RuleObservation(
                OTHER,
                f"The gateway `{name}` is added. What runs without a gateway of its own runs "
                "where it did.",
                "nothing to do",
                severity="low",
                path=path,
                line=find_anchor_line(text, (name, "gateways")),
                subject=(f"gateways.{name}",),
            )


def _list_added_gateways(old: Mapping[str, Any], new: Mapping[str, Any]) -> set[str]:
    """Lists gateways that only the new configuration has, without the default gateway.

    A model that names a new gateway is a changed model, and other rules judge it.
    """
    before, after = (
        list(dict.fromkeys(filter(None, map(_parse_gateway_name, side)))) for side in (old, new)
    )
    # If no gateway is named, SQLMesh takes the first one.
    default = new.get("default_gateway") or next(iter(after), None)
    return set(after) - set(before) - {default} if before else set()


def _parse_gateway_name(key: str) -> str | None:
    """Parses the gateway's name from a setting's key; None for other settings."""
    parts = key.split("\x00")
    return parts[1] if parts[0] == "gateways" and len(parts) > 1 else None


def _list_observations_on_settings(
    settings: Iterable[Setting], path: str, text: str
) -> Iterator[RuleObservation]:
    """Makes one observation for all settings with the same effect."""
    alike: dict[SettingJudgement, list[Setting]] = {}
    for setting in settings:
        judgement = judge_setting_in_file(setting[0].split("\x00"), setting[1], setting[2])
        if does_file_spell_default(*setting):
            judgement = OTHER, "info", "SQLMesh's default, in words or left out", "nothing to do"
        if judgement is not None:
            alike.setdefault(judgement, []).append(setting)
    for (spec, severity, effect, clears), members in alike.items():
        descriptions = [_describe_setting_change(*member) for member in members[:SETTINGS_SHOWN]]
        rest = len(members) - len(descriptions)
        first = members[0][0].split("\x00")
        yield RuleObservation(
            spec,
            f"{', '.join(descriptions)}{f' and {rest} more' if rest > 0 else ''}: {effect}.",
            clears,
            severity=severity,
            path=path,
            line=find_anchor_line(text, (first[-1], first[0])),
            subject=tuple(key.replace("\x00", ".") for key, _, _ in members),
        )


def _describe_setting_change(key: str, before: Any, after: Any) -> str:
    name = key.replace("\x00", ".")
    old, new = _render_setting(name, before), _render_setting(name, after)
    if old == new and STAND_IN.search(str(after)):
        new = "another template"
    return f"`{name}` from {old} to {new}"


def _render_setting(name: str, value: Any) -> str:
    if value is None:
        return "nothing"
    if is_name_of_secret(name):
        return "(not shown)"
    if STAND_IN.fullmatch(str(value)):
        return "a template"
    # Credentials are hidden before the text is cut: half a credential is not recognized.
    text = STAND_IN.sub("{{ … }}", redact_shapes(str(value).replace("\n", " ")))
    return f"`{shorten_redacted(text, SHOWN)}`"


@on_project(*SETTINGS)
def find_objects_changed_in_config_file(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds changes of a config.py in the most important settings, if both versions are known."""
    old, new = inputs.config_before, inputs.config_after
    path = next(
        (p for p in inputs.changed_files or () if PurePosixPath(p).name == "config.py"), None
    )
    if old is None or new is None or path is None:
        return
    settings: list[Setting] = [
        (key, old.settings.get(key), new.settings.get(key))
        for key in {**old.settings, **new.settings}
        if old.settings.get(key) != new.settings.get(key)
    ]
    text = inputs.read_text_after(path) or ""
    yield from _list_observations_on_settings(settings, path, text)


@on_file(SINGLE_WRITER)
def find_single_writer_states_in_files(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds a new state in DuckDB or SQLite to which several tasks write."""
    for path, old, new in iterate_changed_configurations(inputs):
        for key, tasks in list_single_writer_states_in_file(new or {}):
            if (old or {}).get(key) == (new or {}).get(key):
                continue
            text = inputs.read_text_after(path) or ""
            yield RuleObservation(
                SINGLE_WRITER,
                f"The state is a file for one writer, and the connection runs {tasks} tasks at a "
                "time: a second run, or a colleague, waits or fails with a lock.",
                "the state is on a database server such as PostgreSQL",
                path=path,
                line=find_anchor_line(text, ("state_connection", "type: duckdb", "type: sqlite")),
                subject=(key.replace("\x00", "."),),
            )


def list_single_writer_states_in_file(settings: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Lists (key, concurrent tasks) of each state connection that allows only one writer.

    `ci-bot doctor` uses it, too, and judges the project and not the change.
    """
    for key, value in settings.items():
        parts = key.split("\x00")
        if parts[-2:] != ["state_connection", "type"] or value not in {"duckdb", "sqlite"}:
            continue
        tasks_key = "\x00".join([*parts[:-2], "connection", "concurrent_tasks"])
        tasks = settings.get(tasks_key, 4)
        if isinstance(tasks, int) and tasks > 1:
            yield key, tasks
