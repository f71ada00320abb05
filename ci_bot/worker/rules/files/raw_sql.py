"""SQL files as text: their possible dialects, and the effects of their statements."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import PurePosixPath

from sqlglot import Dialects

from ci_bot.jinja_text import BLOCK, EXPRESSION, replace_templates
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.observation import RuleObservation, find_anchor_line
from ci_bot.worker.rules.registry import on_written_statement
from ci_bot.worker.rules.statement_rules import (
    CODE,
    SETTING,
    STATEMENT,
    STATEMENT_IS_GONE,
    find_statement_rule,
    make_statement_subject,
)
from ci_bot.worker.sql_effects import JudgedEffect, read_raw_file
from ci_bot.yaml_reader import load_yaml

# If no file names a dialect: one that quotes with backticks, and one with double quotes.
_UNKNOWN = ("spark", "duckdb")

# So many configurations are kept, so that each is read only once.
_PROJECTS = 8

_KNOWN = frozenset(dialect.value for dialect in Dialects)


def list_dialects(inputs: RuleInputs, path: str) -> tuple[str, ...]:
    """Lists the project's default dialect if its configuration names one, else two usual ones.

    If a MODEL block names its own dialect, the parser uses that.
    """
    found = _find_default_dialect(inputs, path)
    return (found,) if found in _KNOWN else _UNKNOWN


def _find_default_dialect(inputs: RuleInputs, path: str) -> str | None:
    if inputs.default_dialect:
        return _read_dialect_name(inputs.default_dialect)
    inside = inputs.find_path_in_project(path)
    root = PurePosixPath(path[: len(path) - len(inside)] if inside is not None else "")
    for name in ("config.yaml", "config.yml"):
        text = inputs.read_text_after(str(root / name))
        if text is not None:
            return _read_yaml_dialect(text)
    return _read_python_dialect(inputs.read_text_after(str(root / "config.py")) or "")


# All changed files of a project need the same configuration.
@lru_cache(maxsize=_PROJECTS)
def _read_yaml_dialect(text: str) -> str | None:
    """Reads `model_defaults: {dialect: spark}` in a config.yaml."""
    settings = load_yaml(replace_templates(text, lambda _: "jinja", (EXPRESSION, BLOCK)))
    defaults = settings.get("model_defaults") if isinstance(settings, dict) else None
    return _read_dialect_name(defaults.get("dialect") if isinstance(defaults, dict) else None)


@lru_cache(maxsize=_PROJECTS)
def _read_python_dialect(text: str) -> str | None:
    """Reads `dialect="spark"` or `"dialect": "spark"` in a config.py, without running it."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for node in ast.walk(tree):
        values: list[ast.expr] = []
        if isinstance(node, ast.keyword):
            values = [node.value] if node.arg == "dialect" else []
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            values = [
                value
                for key, value in pairs
                if isinstance(key, ast.Constant) and key.value == "dialect"
            ]
        for value in values:
            if isinstance(value, ast.Constant):
                return _read_dialect_name(value.value)
    return None


def _read_dialect_name(value: object) -> str | None:
    """Reads `spark` from `spark, normalization_strategy=lowercase`."""
    return value.split(",")[0].strip().lower() if isinstance(value, str) else None


# Effects of the literal statements in changed files.
#
# The process that loads the project judges the plan's statements, rendered and in full. If code of
# the pull request runs in that process, its judgement cannot be trusted. This one is made before.


@on_written_statement(CODE, STATEMENT, SETTING)
def find_statements_in_changed_files(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Statements that a change adds to a file, and that affect others."""
    for path in inputs.changed_files or ():
        if (
            not path.endswith((".sql", ".yaml", ".yml"))
            or inputs.find_path_in_project(path) is None
        ):
            continue
        after = inputs.read_text_after(path)
        new = _list_blockers(inputs, path, after)
        if after is None or not new:
            continue
        old = Counter(
            _make_statement_key(item)
            for item in _list_blockers(inputs, path, inputs.read_text_before(path))
        )
        for item in new:
            old[_make_statement_key(item)] -= 1
            if old[_make_statement_key(item)] < 0:
                words = item.statement.source.split()
                yield RuleObservation(
                    find_statement_rule(item),
                    f"In {item.statement.slot}, as the file has it: it {item.description}.",
                    STATEMENT_IS_GONE,
                    severity="blocker",
                    model_name=item.statement.model,
                    path=path,
                    line=find_anchor_line(
                        after, (" ".join(words[:3]), " ".join(words[:2]), *words[:1])
                    ),
                    subject=(*make_statement_subject(item), item.statement.source),
                )


def _list_blockers(inputs: RuleInputs, path: str, text: str | None) -> list[JudgedEffect]:
    if text is None:
        return []
    reading = read_raw_file(path, text, list_dialects(inputs, path)[0])
    return [item for item in reading.judged if item.severity == "blocker"]


def _make_statement_key(item: JudgedEffect) -> tuple[str, ...]:
    return *make_statement_subject(item), item.statement.source
