"""SQL files as text: their possible dialects, the effects of their statements, and macro arguments.

SQLMesh would run some arguments of macros as Python. The text is parsed with SQLMesh's own parser,
and nothing is rendered. For each argument that SQLMesh evaluates, and for each part that a macro
could take out of it, this module makes the same Python text as SQLMesh, and judges it. It also
parses strings as SQL, because `@SQL` and other macros do so. An argument that a macro makes only
while it runs is judged when SQLMesh evaluates it (`ci_bot/worker/sqlmesh_compat`).
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any

from sqlglot import Dialects, exp
from sqlglot.errors import SqlglotError
from sqlmesh.core import dialect as d
from sqlmesh.core.macros import MacroDialect
from sqlmesh.utils.errors import SQLMeshError

from ci_bot.jinja_text import BLOCK, EXPRESSION, replace_templates
from ci_bot.protocol.rules import find_rule
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.observation import RuleObservation, find_anchor_line
from ci_bot.worker.rules.registry import on_file, on_written_statement
from ci_bot.worker.rules.statement_rules import (
    CODE,
    SETTING,
    STATEMENT,
    STATEMENT_IS_GONE,
    find_statement_rule,
    make_statement_subject,
)
from ci_bot.worker.sql_effects import JudgedEffect, read_effects_of_raw_file
from ci_bot.worker.sqlmesh_compat import (
    find_objection_to_macro_code,
    list_parts_that_sqlmesh_evaluates,
)
from ci_bot.yaml_reader import read_yaml_or_none

# The dialects if no file names one: one quotes with backticks, the other with double quotes.
_UNKNOWN = ("spark", "duckdb")

# This many configurations are kept, so each is read only once.
_PROJECTS = 8
_KNOWN = frozenset(dialect.value for dialect in Dialects)


def list_dialects_of_sql_file(inputs: RuleInputs, path: str) -> tuple[str, ...]:
    """Lists the default dialect that the project's configuration names, otherwise two common ones.

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
            return _read_dialect_in_yaml(text)
    return _read_dialect_in_python(inputs.read_text_after(str(root / "config.py")) or "")


# All changed files of a project need the same configuration.
@lru_cache(maxsize=_PROJECTS)
def _read_dialect_in_yaml(text: str) -> str | None:
    """Reads `model_defaults: {dialect: spark}` in a config.yaml."""
    settings = read_yaml_or_none(replace_templates(text, lambda _: "jinja", (EXPRESSION, BLOCK)))
    defaults = settings.get("model_defaults") if isinstance(settings, dict) else None
    return _read_dialect_name(defaults.get("dialect") if isinstance(defaults, dict) else None)


@lru_cache(maxsize=_PROJECTS)
def _read_dialect_in_python(text: str) -> str | None:
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


# Effects of the literal statements in changed files.  The process that loads the project judges the
# plan's statements, rendered and in full. If code of the pull request runs in that process, its
# judgement cannot be trusted. The judgement here is made before.


@on_written_statement(CODE, STATEMENT, SETTING)
def find_statements_in_changed_files(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds statements that a change adds to a file, and that affect others."""
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
    reading = read_effects_of_raw_file(path, text, list_dialects_of_sql_file(inputs, path)[0])
    return [item for item in reading.judged if item.severity == "blocker"]


def _make_statement_key(item: JudgedEffect) -> tuple[str, ...]:
    return *make_statement_subject(item), item.statement.source


PYTHON = find_rule("macro-runs-python")
_YAML = frozenset({".yaml", ".yml"})
# The characters of a macro's name, with its `@`, and those that follow a name that is called or
# quoted.
_NAME = re.compile(r"[\w@{}$.]+")
_FOLLOWS = frozenset("('\"`[")
_BLANKS = re.compile(r"\s*")
_MOST_COMMENTS = 50
# The parser gets unchecked text, and may raise other errors than its own.
_UNPARSED = (
    SqlglotError, SQLMeshError, RecursionError,
    ValueError, AttributeError, KeyError, TypeError, IndexError,
)  # fmt: skip
# A macro that the text defines may have any name, also one of SQLMesh's own macros.
_DEFINES_MACROS = re.compile(r"\bDEF\b", re.IGNORECASE)
_PLAIN_NAME = re.compile(r"(?!__)[\w$-]+")
_DEEPEST = 3
# At most this many parts of arguments are judged in one file; the others are judged in rendering.
_MOST_PARTS = 20_000


@on_file(PYTHON)
def find_evaluated_arguments_in_files(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds arguments with more than SQL, in files that the change adds or edits."""
    for path in inputs.changed_files or ():
        suffix = PurePosixPath(path).suffix.lower()
        if suffix != ".sql" and suffix not in _YAML:
            continue
        new = _list_evaluated_parts(inputs, path, inputs.read_text_after(path))
        if not new:
            continue
        old = Counter(
            sql for sql, _, _ in _list_evaluated_parts(inputs, path, inputs.read_text_before(path))
        )
        reported: set[tuple[str, int]] = set()
        for sql, why, line in new:
            old[sql] -= 1
            if old[sql] < 0 and (why, line) not in reported:
                reported.add((why, line))
                yield RuleObservation(
                    PYTHON,
                    f"SQLMesh evaluates arguments of macros as Python, and in this one {why}. "
                    "Everybody who loads this branch runs it.",
                    "the argument is plain SQL",
                    path=path,
                    line=line,
                    subject=(f"line {line}", sql),
                )


def _list_evaluated_parts(
    inputs: RuleInputs, path: str, text: str | None
) -> list[tuple[str, str, int]]:
    """Lists (argument as SQL, reason, line) of each argument that would run as Python."""
    if text is None or not _may_call_macro(text):
        return []
    pieces = _list_strings(text) if PurePosixPath(path).suffix.lower() in _YAML else [text]
    return [
        (sql, why, _find_line_of_sql_argument(text, sql))
        for piece in pieces
        for sql, why in _iterate_objections(piece, list_dialects_of_sql_file(inputs, path))
    ]


def _may_call_macro(text: str) -> bool:
    """Whether a text may contain `@name(` or `@'...'`; without them a file is not parsed.

    The parser ignores blanks and comments between the parts. Each character is read a few times at
    most. A pattern that searches on from every `@` takes minutes for 60 kB of them.
    """
    skip = _BlankSkipper(text)
    wanted: set[int] = set()  # where a name belongs to the `@` before it
    for name in _NAME.finditer(text):
        if "@" not in name[0] and name.start() not in wanted:
            continue
        at = skip.find_end(name.end())
        if at is None or text[at : at + 1] in _FOLLOWS:
            return True
        if name[0].endswith("@"):
            wanted.add(at)
    return False


class _BlankSkipper:
    """A reader that skips blanks and comments; its positions must only grow."""

    def __init__(self, text: str) -> None:
        self._text = text
        # The position of the next end of each kind of comment; the length of the text if there is
        # none.
        self._ends = {"/*": -1, "--": -1}

    def find_end(self, at: int) -> int | None:
        """Returns where other text begins; None after nested comments, or after more than 50."""
        for _ in range(_MOST_COMMENTS):
            blanks = _BLANKS.match(self._text, at)
            at = blanks.end() if blanks is not None else at
            kind = self._text[at : at + 2]
            if kind not in self._ends:
                return at
            closing = "*/" if kind == "/*" else "\n"
            if self._ends[kind] < at + 2:
                found = self._text.find(closing, at + 2)
                self._ends[kind] = len(self._text) if found < 0 else found
            if self._ends[kind] == len(self._text):
                return at  # a comment without an end is no comment
            if kind == "/*" and self._text.find(kind, at + 2, self._ends[kind]) >= 0:
                return None  # in some dialects comments are nested
            at = self._ends[kind] + len(closing)
        return None


def _drop_templates(text: str) -> str:
    return replace_templates(text, lambda _: " ")


def _does_file_define_macros(text: str) -> bool:
    begun = _DEFINES_MACROS.search(text)
    return begun is not None and text.find("->", begun.end()) >= 0


def _list_strings(text: str) -> list[str]:
    """Lists the texts of a YAML file that may be SQL with macros."""
    found: list[str] = []
    todo: list[Any] = [read_yaml_or_none(_drop_templates(text))]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            todo += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            todo += value
        elif isinstance(value, str) and _may_call_macro(value):
            found.append(value)
    return found


def _iterate_objections(text: str, dialects: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yields (argument as SQL, reason) of each argument that would run as Python."""
    left = [_MOST_PARTS]
    for dialect in dialects[:1] if d.DIALECT_PATTERN.search(text) else dialects:
        scan = _SqlFileArgumentScan(dialect, left, own_macros=_does_file_define_macros(text))
        for expression in _parse_sql_file_text(text, dialect):
            yield from scan.find_objections(expression)


def _parse_sql_file_text(text: str, dialect: str) -> list[Any]:
    try:
        return list(d.parse(text, default_dialect=dialect or None))
    except _UNPARSED:
        return []


@dataclass(frozen=True, slots=True)
class _SqlFileArgumentScan:
    """A search in the trees of one text.

    Attributes:
        left: The number of parts that may still be checked.
    """

    dialect: str
    left: list[int]
    own_macros: bool

    def find_objections(self, tree: exp.Expr, depth: int = 0) -> Iterator[tuple[str, str]]:
        for argument in list_parts_that_sqlmesh_evaluates(tree, own_macros=self.own_macros):
            yield from self._find_in_argument(argument, depth)
        for template in tree.find_all(d.Jinja) if depth < _DEEPEST else ():
            # Its text becomes SQL, and the macros in that are evaluated.
            for inner in _parse_sql_file_text(_drop_templates(template.name), self.dialect):
                yield from self.find_objections(inner, depth + 1)

    def _find_in_argument(self, argument: exp.Expr, depth: int) -> Iterator[tuple[str, str]]:
        for part in argument.walk():
            self.left[0] -= 1
            if self.left[0] < 0:
                return
            why = (
                None
                if _does_name_columns(part)
                else find_objection_to_macro_code(_render_python(part), may_read=True)
            )
            if why is not None:
                yield part.sql(dialect=self.dialect or None, comments=False), why
                return
            if isinstance(part, exp.Literal) and part.is_string and depth < _DEEPEST:
                yield from self._find_in_string(part.this, depth + 1)

    def _find_in_string(self, text: str, depth: int) -> Iterator[tuple[str, str]]:
        """Searches SQL that a macro may parse: every part of it may become an argument."""
        if not re.search(r"[(`\"\[]", text):
            return
        try:
            tree = d.parse_one(text, dialect=self.dialect or None)
        except _UNPARSED:
            return
        yield from self._find_in_argument(tree, depth)


def _does_name_columns(part: Any) -> bool:
    """Whether a part is a list of names, as in `AS pairs(k, v)`: in Python it would be a call."""
    names = [part.this, *part.columns] if isinstance(part, exp.TableAlias) else []
    return bool(names) and all(_is_plain_statement(name) for name in names)


def _is_plain_statement(name: Any) -> bool:
    return isinstance(name, exp.Identifier) and bool(_PLAIN_NAME.fullmatch(name.name))


def _render_python(part: Any) -> str:
    """Renders the Python text that SQLMesh makes of a part; "" if it fails."""
    try:
        return str(_make_python_generator().generate(part.transform(_remove_names_from_sql)))
    except Exception:
        # SQLMesh's generator raises many kinds of errors if there is no Python for a part.
        return ""


def _remove_names_from_sql(node: exp.Expr) -> Any:
    """Replaces variables by a text, and names of tables by a plain name.

    SQLMesh replaces variables before it evaluates anything. The table in a query is no Python
    expression, although `shop.orders` looks like an attribute.
    """
    if isinstance(node, d.MacroVar):
        return exp.Literal.string("x")
    if isinstance(node, exp.Table) and node.parts and all(map(_is_plain_statement, node.parts)):
        return exp.Identifier(this="a_table")
    return node


@lru_cache(maxsize=1)
def _make_python_generator() -> Any:
    return MacroDialect().generator()


def _find_line_of_sql_argument(text: str, sql: str) -> int:
    """Finds the line with the longest word of the argument, from 1."""
    for word in sorted(set(re.findall(r"[^\s,()]+", sql)), key=len, reverse=True):
        at = text.find(word)
        if at >= 0:
            return text.count("\n", 0, at) + 1
    return text.count("\n", 0, max(text.find("@"), 0)) + 1
