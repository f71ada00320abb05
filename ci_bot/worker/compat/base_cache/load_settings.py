"""All that decides what the SQL file of a model becomes, beside the file, as one digest."""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Mapping
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Any

import sqlglot
import sqlmesh
from pydantic import BaseModel
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlmesh.core import constants as c
from sqlmesh.core.loader import SqlMeshLoader

import ci_bot

# What is run or read before models are, and could change how they are read.
_DIRECTORIES = (c.MACROS, c.AUDITS, c.SIGNALS, c.MATERIALIZATIONS)
# In a default these would run code of the project for each model.
_TEMPLATES = ("@", "{{", "{%")


class _UnknownError(Exception):
    """Something that has no sure text."""


def settings_digest(
    loader: Any,
    *,
    macros: Mapping[str, Any],
    jinja_macros: Any,
    audits: Mapping[str, Any],
    signals: Mapping[str, Any],
) -> bytes | None:
    """The digest of what `SqlMeshLoader._load_sql_models` hands to each file's loading.

    Returns:
        None where it cannot be told: then no file of the project is known.
    """
    if type(loader) is not SqlMeshLoader:
        return None
    config, context = loader.config, loader.context
    defaults = config.model_defaults.dict()
    if not is_plain_dialect(config.model_defaults.dialect):
        return None
    rendered = {name: value for name, value in defaults.items() if name != "cron"}
    try:
        if any(sign in _text(rendered) for sign in _TEMPLATES):
            return None
        told = [
            [ci_bot.__version__, platform.python_version()],
            [sqlmesh.__version__, sqlglot.__version__],
            defaults,
            config.variables,
            {name: gateway.variables for name, gateway in config.gateways.items()},
            [context.selected_gateway, context.default_catalog],
            context.default_catalog_per_gateway,
            [config.project, config.time_column_format, config.model_naming.infer_names],
            config.physical_schema_mapping,
            config.virtual_environment_mode,
            # A model that uses code is never known; but the name of a macro can hide another one.
            [sorted(macros), sorted(audits), sorted(signals)],
            [sorted(jinja_macros.root_macros), sorted(jinja_macros.packages)],
        ]
        digest = hashlib.sha256(_text(told).encode())
        for path in _files_around(loader.config_path):
            name = path.relative_to(loader.config_path).as_posix()
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"\0{name}\0{content}".encode())
    except (_UnknownError, OSError, AttributeError):
        return None
    return digest.digest()


def is_plain_dialect(name: str | None) -> bool:
    """Whether sqlglot itself brings this dialect: a package of others can change by itself."""
    try:
        found = type(Dialect.get_or_raise(name))
    except ValueError:
        return False
    return found is Dialect or found.__module__.startswith("sqlglot.dialects.")


def _files_around(project: Path) -> list[Path]:
    folders = [project / name for name in _DIRECTORIES]
    found = [path for folder in folders for path in folder.rglob("*")]
    kept = [path for path in found if path.is_file() and "__pycache__" not in path.parts]
    return sorted([*kept, *project.glob("config.*")])


def _text(value: Any) -> str:
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:  # noqa: PLR0911 - one return per type
    if value is None or isinstance(value, str | int | float | bool):
        return value if not isinstance(value, Enum) else value.value
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, Mapping):
        return [[_plain(key), _plain(found)] for key, found in value.items()]
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, set | frozenset):
        return sorted(_text(one) for one in value)
    if isinstance(value, BaseModel):
        return [type(value).__name__, _plain(dict(value))]
    if isinstance(value, exp.Expression):
        return value.sql(comments=True)
    if isinstance(value, date):
        return [type(value).__name__, value.isoformat()]
    if isinstance(value, re.Pattern):
        return [value.pattern, value.flags]
    raise _UnknownError
