"""Settings that run a program, a library or a jar, although no line of Python changes.

SQLMesh passes them on when it opens a connection. The review opens the connection for unit tests.
(SQLMesh's `config/connection.py` and `env_vars`; Spark's and DuckDB's documentation of their
settings)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ci_bot.protocol.rules import find_rule
from ci_bot.worker.rules.files.configuration_text import (
    flatten_configuration,
    is_project_yaml,
    read_text_before_move,
)
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.observation import RuleObservation, find_anchor_line, quote_names
from ci_bot.worker.rules.registry import on_file

RUNS_CODE = find_rule("setting-runs-code")

_CONNECTIONS = re.compile(r"(^|_)connection$")
# Native libraries and classes by name: DuckDB's extensions, ODBC drivers, an identity provider's
# class, a directory with Spark's own configuration, Python's file systems.
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
def find_program_settings(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """New or changed settings that run code, in a project's YAML configuration."""
    for path in inputs.changed_files or ():
        if not is_project_yaml(inputs, path):
            continue
        old, new = (
            flatten_configuration(read_text_before_move(inputs, path)) or {},
            flatten_configuration(inputs.read_text_after(path)) or {},
        )
        found = [
            key.split("\x00")
            for key, value in new.items()
            if old.get(key) != value and _starts_program(key.split("\x00"), value)
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


def _starts_program(parts: list[str], value: Any) -> bool:
    if "env_vars" in parts:
        return True  # JAVA_TOOL_OPTIONS, PYSPARK_PYTHON, and others that a started program reads
    place = next((n for n, part in enumerate(parts) if _CONNECTIONS.search(part)), len(parts))
    setting = parts[place + 1 :]
    if not setting or value in (None, "", [], {}):
        return False
    if setting[0] in _PASTED:
        breaks_out = any(map(_BREAKS_OUT.search, [*setting[1:], *_iterate_texts(value)]))
        return breaks_out or any(map(_DUCKDB.search, setting[1:]))
    if setting[0] == "config":
        return _starts_from_spark(".".join(setting[1:]), str(value))
    return setting[0] in _LOADERS


def _iterate_texts(value: Any) -> Iterator[str]:
    """Yields every key and value inside a list or mapping."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from _iterate_texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _iterate_texts(inner)
    else:
        yield str(value)


def _starts_from_spark(name: str, value: str) -> bool:
    if _JAVA_OPTIONS.match(name):
        return bool(_STARTING_OPTION.search(value))
    return bool(_SPARK.match(name))
