"""A project's configuration: its text without a load, and the effects of its settings.

Some settings run a program although no line of Python changes; others have no rule of their own.
SQLMesh passes settings on when it opens a connection. The review opens the connection for unit
tests. (SQLMesh's `config/connection.py` and `env_vars`; Spark's and DuckDB's documentation of their
settings)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any

from ci_bot.jinja_text import REMARK, replace_templates
from ci_bot.protocol.plan import Severity
from ci_bot.protocol.rules import find_rule, quote_names
from ci_bot.static_config import FILES
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.observation import RuleObservation, find_anchor_line
from ci_bot.worker.rules.registry import on_file
from ci_bot.yaml_reader import read_yaml_or_none

_FILES = frozenset(FILES)
_DIGITS = 16
STAND_IN = re.compile(rf"jinja[0-9a-f]{{{_DIGITS}}}")


def flatten_configuration_file(text: str | None) -> dict[str, object] | None:
    """Flattens a YAML configuration; None if it is no mapping.

    A NUL character joins the nested keys.

    The result of Jinja depends on the machine, so a template is a value that equals only itself.
    """
    if text is None:
        return None
    found = read_yaml_or_none(replace_templates_in_configuration_file(text))
    return dict(_iterate_flat_keys(found, ())) if isinstance(found, dict) else None


def replace_templates_in_configuration_file(text: str) -> str:
    """Replaces each template by a word. A condition in one line counts as one value."""
    return replace_templates(text, _make_placeholder, whole_conditions=True)


def _make_placeholder(template: str) -> str:
    """Makes a word for a template, always the same one; empty for a comment."""
    if template.startswith(REMARK):
        return ""
    words = " ".join(template.split())
    # Jinja has two kinds of quotes that mean the same.
    words = words if "'" in words else words.replace('"', "'")
    return f"jinja{sha256(words.encode()).hexdigest()[:_DIGITS]}"


def _iterate_flat_keys(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _iterate_flat_keys(inner, (*path, str(key)))
    else:
        yield "\x00".join(path), value


def is_configuration_file_of_project(inputs: RuleInputs, path: str) -> bool:
    """Whether a file is the YAML configuration of one of the projects."""
    return PurePosixPath(path).name in _FILES and inputs.find_path_in_project(path) in _FILES


def read_file_text_before_move(inputs: RuleInputs, path: str) -> str | None:
    """Reads a configuration's earlier text, which may have another of SQLMesh's file names.

    None if there was no such file.
    """
    text = inputs.read_text_before(path)
    changed = inputs.all_changed_files or inputs.changed_files or ()
    for name in FILES if text is None else ():
        other = str(PurePosixPath(path).with_name(name))
        if other in changed and inputs.read_text_after(other) is None:
            text = inputs.read_text_before(other) or text
    return text


def iterate_changed_configurations(
    inputs: RuleInputs,
) -> Iterator[tuple[str, dict[str, object] | None, dict[str, object] | None]]:
    """Yields each changed configuration's path, with its flat keys and values before and after."""
    for path in inputs.changed_files or ():
        if is_configuration_file_of_project(inputs, path):
            yield (
                path,
                flatten_configuration_file(read_file_text_before_move(inputs, path)),
                flatten_configuration_file(inputs.read_text_after(path)),
            )


RUNS_CODE = find_rule("setting-runs-code")
_CONNECTIONS = re.compile(r"(^|_)connection$")
# Native libraries and classes by name: DuckDB's extensions, ODBC drivers, the class of an identity
# provider, a directory with Spark's own configuration, Python's file systems.
_LOADERS = frozenset(
    {"extensions", "filesystems", "driver", "driver_name", "odbc_properties", "conn_properties",
     "credentials_provider", "config_dir", "krb5_config", "plugin_name"}
)  # fmt: skip
# SQLMesh puts these into statements unquoted, so a quote or a semicolon begins another statement.
_PASTED = frozenset({"connector_config", "secrets", "catalogs", "database"})
_BREAKS_OUT = re.compile(r"['\";]")
_DUCKDB = re.compile(r"extension|secret_directory|home_directory", re.IGNORECASE)
# Settings that load code. A class that is only named must be on the class path already.
_SPARK = re.compile(
    r"""(?ix) ^spark\.(
      jars | files | archives | submit\.pyFiles | sql\.hive\.metastore\.jars | .*extraClassPath
      | .*extraLibraryPath | pyspark\..*python | .*python\.(worker|daemon)\. | executorEnv\.
      | .*appMasterEnv\. | r\..*command
    )"""
)
_JAVA_OPTIONS = re.compile(r"^spark\..*JavaOptions$", re.IGNORECASE)
_STARTING_OPTION = re.compile(
    r"agent|classpath|OnError|OnOutOfMemory|library\.path|@|config\w*=", re.IGNORECASE
)


@on_file(RUNS_CODE)
def find_program_settings_in_file(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds new or changed settings that run code, in a project's YAML configuration."""
    for path, old, new in iterate_changed_configurations(inputs):
        found = [
            key.split("\x00")
            for key, value in (new or {}).items()
            if (old or {}).get(key) != value
            and _does_setting_start_program(key.split("\x00"), value)
        ]
        if found:
            yield RuleObservation(
                RUNS_CODE,
                f"{quote_names('.'.join(parts) for parts in found)}: what is named there is "
                "loaded or started when the connection is opened, in a review for the unit tests "
                "already.",
                "a person has read what it loads and where that comes from",
                path=path,
                line=find_anchor_line(
                    inputs.read_text_after(path) or "", (found[0][-1], found[0][0])
                ),
                subject=tuple(".".join(parts) for parts in found),
            )


def _does_setting_start_program(parts: list[str], value: Any) -> bool:
    if "env_vars" in parts:
        return True  # JAVA_TOOL_OPTIONS, PYSPARK_PYTHON, and others that a started program reads
    place = next((n for n, part in enumerate(parts) if _CONNECTIONS.search(part)), len(parts))
    setting = parts[place + 1 :]
    if not setting or value in (None, "", [], {}):
        return False
    if setting[0] in _PASTED:
        breaks_out = any(map(_BREAKS_OUT.search, [*setting[1:], *_iterate_texts_of_setting(value)]))
        return breaks_out or any(map(_DUCKDB.search, setting[1:]))
    if setting[0] == "config":
        return _does_setting_start_from_spark(".".join(setting[1:]), str(value))
    return setting[0] in _LOADERS


def _iterate_texts_of_setting(value: Any) -> Iterator[str]:
    """Yields every key and value inside a list or mapping."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from _iterate_texts_of_setting(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _iterate_texts_of_setting(inner)
    else:
        yield str(value)


def _does_setting_start_from_spark(name: str, value: str) -> bool:
    if _JAVA_OPTIONS.match(name):
        return bool(_STARTING_OPTION.search(value))
    return bool(_SPARK.match(name))


# The severity if it is not the rule's, the effect of the setting, and the condition that clears it.
OtherJudgement = tuple[Severity | None, str, str]

CONFIRM = "the owner of the project confirms it"
_NOTHING = "nothing to do"

_EFFECTS: dict[str, OtherJudgement] = {
    "time_column_format": (
        "high",
        "time columns without a format of their own are read differently",
        CONFIRM,
    ),
    "loader": ("high", "how the project is read", CONFIRM),
    "env_vars": ("high", "templates and programs of the project read this variable", CONFIRM),
    "username": ("high", "notifications of plans and runs go to this person alone", CONFIRM),
    # The rule `files-ignored` reports the files that match.
    "ignore_patterns": (None, "files that match are not loaded", _NOTHING),
    "variables": (None, "models that use them are computed again", _NOTHING),
    "cicd_bot": (None, "how pull requests are planned, here and by SQLMesh's own bot", _NOTHING),
    "infer_python_dependencies": (None, "how the requirements are found", _NOTHING),
}
# Data that are deleted after this time. To keep them longer only needs space.
_LIFETIMES = {
    "snapshot_ttl": "table versions that no environment uses",
    "environment_ttl": "environments",
}
# SQLMesh's default of both (https://sqlmesh.readthedocs.io/en/stable/reference/configuration/).
_DEFAULT_LIFETIME = "in 1 week"
_LIFETIME = re.compile(r"in (\d+) (minute|hour|day|week|month|year)s?")
_HOURS = {"minute": 1 / 60, "hour": 1, "day": 24, "week": 168, "month": 720, "year": 8760}
# Events of SQLMesh's notifications after which somebody must act.
_FAILURES = frozenset({"apply_failure", "run_failure", "audit_failure", "migration_failure"})
_APPROVER = "required_approver"


# Settings that decide which commits SQLMesh's own bot deploys, and when it must not.
# (https://sqlmesh.readthedocs.io/en/stable/integrations/github/)
_DEPLOYS = {
    "prod_branch_name": "SQLMesh's own bot deploys to prod what is merged into this branch",
    "check_if_blocked_on_deploy_to_prod": "SQLMesh's own bot deploys a pull request whose merge "
    "GitHub holds back, or does so no longer",
    "auto_categorize_changes": "SQLMesh's own bot decides otherwise which changes compute history "
    "again",
    "forward_only_branch_suffix": "branches that end so are planned forward-only: history is not "
    "computed again",
    "run_on_deploy_to_prod": "what SQLMesh's own bot computes with a deployment",
    "enable_deploy_command": "who may have SQLMesh's own bot deploy by a comment",
}


# SQLMesh's defaults (`integrations/github/cicd/config.py`, `core/config/run.py`).
_DEFAULTS: dict[str, Any] = {
    "check_if_blocked_on_deploy_to_prod": True,
    "forward_only_branch_suffix": "-forward-only",
    "run_on_deploy_to_prod": False,
    "enable_deploy_command": False,
}
_LONGEST_WAIT = 6 * 60 * 60


def _read_default(name: str, value: Any) -> Any:
    """Returns a setting's value or its default; without a name the bot deploys main."""
    if name == "prod_branch_name" and value in (None, "main"):
        return "main"
    return _DEFAULTS.get(name) if value is None else value


def _judge_run_setting(name: str, before: Any, after: Any) -> OtherJudgement:
    if name != "environment_check_max_wait":
        return "info", "how often a run asks whether a plan has ended", _NOTHING
    was, now = (_LONGEST_WAIT if one is None else one for one in (before, after))
    try:
        is_shorter = float(now) < float(was)
    except (TypeError, ValueError):
        is_shorter = True
    if is_shorter:
        return "high", "a run that meets a plan under way gives up sooner, with an error", CONFIRM
    return "low", "a run waits longer for a plan that is under way", _NOTHING


def judge_other_setting_in_file(
    head: str, before: Any = None, after: Any = None, *, name: str = ""
) -> OtherJudgement:
    """Judges a change of a setting without its own rule: severity, effect, and what clears it.

    Args:
        head: The first key of the setting.
        before, after: Its values; None if it is not set.
        name: The key below it, if there is one.
    """
    if head == "cicd_bot" and name in _DEPLOYS:
        # A new setting often only repeats SQLMesh's default.
        same = _read_default(name, before) == _read_default(name, after)
        return "low" if same else "high", _DEPLOYS[name], CONFIRM
    if head == "run":
        return _judge_run_setting(name, before, after)
    guard = _find_lost_guard(head, before, after)
    if guard is not None:
        return "high", guard, CONFIRM
    if head in _LIFETIMES:
        return _judge_lifetime_setting(_LIFETIMES[head], before, after)
    return _EFFECTS.get(head, ("info", "a setting of the project", _NOTHING))


def _judge_lifetime_setting(what: str, before: Any, after: Any) -> OtherJudgement:
    was, now = _read_hours(before), _read_hours(after)
    if was is None or now is None:
        return "medium", f"{what} are kept for another time", CONFIRM
    if now >= was:
        return "low", f"{what} are kept longer, which needs space", _NOTHING
    return "medium", f"{what} are deleted sooner", CONFIRM


def _read_hours(lifetime: Any) -> float | None:
    """Reads a lifetime in hours; None if its form is not the one in SQLMesh's documentation."""
    found = _LIFETIME.fullmatch(" ".join(str(lifetime or _DEFAULT_LIFETIME).lower().split()))
    return None if found is None else int(found[1]) * _HOURS[found[2]]


def _find_lost_guard(head: str, before: Any, after: Any) -> str | None:
    """Describes a lost guard: an approval, a notice of failures, a pinned environment.

    None if no guard is lost.
    """
    if head == "pinned_environments":
        if list_lower_case_words_of_setting(before) - list_lower_case_words_of_setting(after):
            return "the janitor deletes an environment that is not pinned once its time is over"
    elif head == "users":
        lost = _list_approvers(before) - _list_approvers(after)
        if lost and not _list_approvers(after):
            return "SQLMesh's own bot asks nobody for an approval before it deploys"
        if lost:
            return "SQLMesh's own bot no longer asks them for an approval before it deploys"
    if head in {"users", "notification_targets"}:
        silent = _list_heard_failures(before) - _list_heard_failures(after)
        if silent:
            return f"nobody here gets notice of {', '.join(sorted(silent))} any more"
    return None


def list_lower_case_words_of_setting(value: Any) -> set[str]:
    """The words of a setting that takes one or a list of them, in lower case."""
    items = value if isinstance(value, list) else [value] if value else []
    return {str(item).lower() for item in items}


def _list_mappings_of_setting(value: Any) -> Iterable[Mapping[str, Any]]:
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, dict)]


def _list_approvers(users: Any) -> set[str]:
    return {
        str(user.get("github_username") or user.get("username")).lower()
        for user in _list_mappings_of_setting(users)
        if _APPROVER in list_lower_case_words_of_setting(user.get("roles"))
    }


def _list_heard_failures(targets: Any) -> set[str]:
    """Lists the failures about which notification targets, or those of the users, get a notice."""
    heard: set[str] = set()
    for one in _list_mappings_of_setting(targets):
        heard |= list_lower_case_words_of_setting(one.get("notify_on")) & _FAILURES
        heard |= _list_heard_failures(one.get("notification_targets"))
    return heard


# SQLMesh's defaults (`core/config/root.py`).
_WRITTEN_DEFAULTS: dict[str, object] = {
    "environment_suffix_target": "schema",
    "virtual_environment_mode": "full",
    "physical_table_naming_convention": "schema_and_table",
    "gateway_managed_virtual_layer": False,
    "default_target_environment": "prod",
}


def does_file_spell_default(name: str, before: Any, after: Any) -> bool:
    """Whether a setting only writes out SQLMesh's default, or leaves it out again."""
    default = _WRITTEN_DEFAULTS.get(name)
    return default is not None and {str(before), str(after)} == {"None", str(default)}
