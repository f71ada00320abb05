"""The effects of SQL in a file or a Jinja template, read as text, without evaluating anything.

It is for a process that has loaded nothing of a pull request. `sqlmesh.core.dialect.parse` makes
trees of the text and evaluates nothing; YAML and Jinja's tokens also have parsers. The process that
loads the project judges the rendered form of the same statements
(`judge_statement_effects_of_plan`). The literal form shows whether that process left out something
that the file contains.

The result of `read_effects_of_raw_file("models/orders.sql", text, "spark")` has two fields:
    judged: statements that affect others, in the form of `judge_statement_effects_of_plan`.
    undecided: texts whose effects only a running macro or template would show.

A literal statement counts in any place: in a Jinja block, in an argument of a macro, and in a
string that a macro or a template gets. A target that is computed is undecided. `@this_model` and
the name of the file's own model mean the model's own table. `undecided` alone is no finding. If a
text cannot be parsed, SQLMesh writes that to its console, so the caller chooses a silent console.

A Jinja template is only split into its tokens. The parser gets the text between two tags, each
string inside a tag, and the whole text without its tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from jinja2 import Environment, TemplateSyntaxError
from sqlglot import Dialect, exp
from sqlglot.errors import SqlglotError
from sqlmesh.core import dialect as d

from ci_bot.worker.runtime import silence_worker_log
from ci_bot.worker.sql_effects import effects as names
from ci_bot.worker.sql_effects.effects import (
    NOT_PARSED,
    RUNS_JAVA,
    Action,
    OwnObjects,
    SqlEffect,
    find_unsafe_format,
    find_unsafe_property,
    make_unknown_effect,
)
from ci_bot.worker.sql_effects.judgement import (
    JudgedEffect,
    RenderedStatement,
    describe_effect,
    weigh_effect,
)
from ci_bot.worker.sql_effects.read_statement import (
    ACTING_WORDS,
    read_dotted_name,
    read_effects_of_literal_sql,
    read_effects_of_unrendered_statement,
)
from ci_bot.yaml_reader import UnfitYaml, read_yaml

# Replaces a value of the template by a macro of SQLMesh, whose value is also unknown.
_VALUE = "@jinja_value"
_OWN = ("this", "this_model")
_VERBS: dict[tuple[str, str], Action] = {
    ("INSERT", "INTO"): "writes",
    ("INSERT", "OVERWRITE"): "writes",
    ("MERGE", "INTO"): "writes",
    ("DELETE", "FROM"): "writes",
    ("TRUNCATE", "TABLE"): "writes",
    ("LOAD", "DATA"): "writes",
    ("DROP", "TABLE"): "drops",
    ("DROP", "VIEW"): "drops",
    ("DROP", "SCHEMA"): "drops",
    ("DROP", "DATABASE"): "drops",
    ("ALTER", "TABLE"): "alters",
    ("ALTER", "VIEW"): "alters",
    ("CREATE", "TABLE"): "creates",
}
_BETWEEN = frozenset({"TABLE", "IF", "NOT", "EXISTS"})


def read_effects_of_literal_parts(
    tree: exp.Expr, dialect: str
) -> tuple[tuple[SqlEffect, ...], bool]:
    """Reads an unrendered statement's literal effects, and whether rendering could add some."""
    if tree.key.startswith("jinja"):
        return tuple(list_template_effects(tree.name, dialect)), True
    return read_effects_of_unrendered_statement(tree, dialect)


def list_template_effects(template: str, dialect: str) -> Iterator[SqlEffect]:
    """Lists the effects of a template's literal parts, each once."""
    yield from dict.fromkeys(_iterate_template_effects(template, dialect))


def _iterate_template_effects(template: str, dialect: str) -> Iterator[SqlEffect]:
    try:
        pieces, strings = _split_template(template)
    except TemplateSyntaxError:
        pieces, strings = [template], []
    yield from read_effects_of_literal_sql(" ".join(pieces), dialect) or ()
    for piece in pieces:
        read = read_effects_of_literal_sql(piece, dialect)
        yield from read if read is not None else _list_effects_of_cut_statements(piece, dialect)
    for text in strings:
        # A single word is a value, although it can be parsed as the name of a column.
        yield from (read_effects_of_literal_sql(text, dialect) or ()) if " " in text.strip() else ()


def _split_template(template: str) -> tuple[list[str], list[str]]:
    """Splits a template into the texts between block tags and the strings inside tags.

    In the texts a macro replaces each value.
    """
    pieces, strings, inside = [""], [], ""
    for _, kind, text in Environment(autoescape=True).lex(template):
        if kind == "data":
            pieces[-1] += text
        elif kind == "string":
            strings.append(text[1:-1])
        elif kind == "variable_begin":
            inside = ""
        elif kind == "variable_end":
            pieces[-1] += "@this_model" if inside in _OWN else _VALUE
        elif kind == "block_end":
            pieces.append("")
        elif kind in ("name", "operator"):
            inside += text
    return pieces, strings


def _list_effects_of_cut_statements(text: str, dialect: str) -> Iterator[SqlEffect]:
    """Lists the effects of statements of which a tag leaves only the first words and the name."""
    try:
        tokens = Dialect.get_or_raise(dialect).tokenize(text)
    except SqlglotError:
        return
    starts = [0, *(n + 1 for n, t in enumerate(tokens) if t.token_type.name == "SEMICOLON")]
    for start in starts:
        words = tuple(token.text.upper() for token in tokens[start : start + 2])
        action = _VERBS.get(words) if len(words) > 1 else None  # type: ignore[arg-type]
        if action is not None:
            at = start + 2
            while at < len(tokens) and tokens[at].text.upper() in _BETWEEN:
                at += 1
            target, _ = read_dotted_name(tokens, at)
            yield SqlEffect(action, " ".join(words), target, schema="SCHEMA" in words)


# Keys of configurations whose values are executed; the last ones are dbt's.
_SLOTS = frozenset(
    {"before_all", "after_all", "pre_statements", "post_statements", "on_virtual_update",
     "on-run-start", "on-run-end", "pre-hook", "post-hook", "pre_hook", "post_hook",
     "+pre-hook", "+post-hook"}
)  # fmt: skip
_BLOCKS = frozenset({"model", "audit", "metric"})
# A file that is one query without any of these words has no other effect, in any dialect. Most SQL
# files are like that, and parsing takes milliseconds. A macro, a template or a second statement
# could add an effect. A comment ends at its first `*/`: a pattern that could continue into the next
# comment takes days for 40 of them.
_QUERY = re.compile(
    r"\s*(?:(?:--[^\n]*\n|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/)\s*)*(?:SELECT|WITH)\b", re.IGNORECASE
)
_MAY_ACT = re.compile(
    rf"[@{{\\;]|\b(?:{'|'.join(sorted(ACTING_WORDS | RUNS_JAVA | {'transform'}))})\b", re.I
)
# YAML can write a key with escapes, and a tag can make a key of another value.
_MAY_BE_EXECUTED = re.compile("|".join([*map(re.escape, sorted(_SLOTS)), r"\\", r"!"]))


@dataclass(frozen=True)
class FileEffects:
    """The effects of the SQL in one file; the module's docstring describes both fields."""

    judged: tuple[JudgedEffect, ...] = ()
    undecided: tuple[str, ...] = ()


def read_effects_of_raw_file(path: str, text: str, dialect: str) -> FileEffects:
    """Reads the effects of one file of a project.

    Args:
        path: its ending decides how the file is read; only SQL and YAML files have effects.
        dialect: the dialect of models that name none.
    """
    suffix = PurePosixPath(path).suffix.lower()
    if suffix == ".sql":
        return _read_effects_of_sql_file(text, dialect)
    if suffix in (".yaml", ".yml"):
        return _read_effects_of_yaml(text, dialect)
    return FileEffects()


@dataclass(frozen=True)
class _StatementPiece:
    """A statement with the effects of its literal parts."""

    slot: str
    model: str | None
    source: str
    effects: tuple[SqlEffect, ...]
    undecided: bool


def _read_effects_of_sql_file(text: str, dialect: str) -> FileEffects:
    if _QUERY.match(text) and not _MAY_ACT.search(text.rstrip().removesuffix(";")):
        return FileEffects()
    trees = _parse_project_sql(text, dialect)
    if trees is None:
        if "{%" not in text and "{{" not in text:
            return FileEffects()  # the load fails, and reports why
        # A file of Jinja macros, or a dbt model.
        effects = tuple(list_template_effects(text, dialect))
        return _make_file_effects([_StatementPiece("template", None, text, effects, True)], dialect)
    return _make_file_effects(list(_iterate_statement_pieces(trees, dialect)), dialect)


def _parse_project_sql(text: str, dialect: str) -> list[exp.Expr] | None:
    with silence_worker_log("sqlglot"):
        try:
            return d.parse(text, default_dialect=dialect)
        except Exception:  # it is no SQL, or SQL on which the parser itself fails
            return None


def _iterate_statement_pieces(trees: Iterable[exp.Expr], dialect: str) -> Iterator[_StatementPiece]:
    model = None
    for tree in trees:
        if tree.key in _BLOCKS:
            model, dialect = _read_block_name(tree), _read_block_dialect(tree) or dialect
            yield from _read_effects_of_model_block(tree, model, dialect)
        elif tree.key == "virtualupdatestatement":
            for inner in tree.expressions:
                yield _make_statement_piece("on-virtual-update", model, inner, dialect)
        else:
            yield _make_statement_piece("statement", model, tree, dialect)


def _read_effects_of_model_block(
    tree: exp.Expr, model: str | None, dialect: str
) -> Iterator[_StatementPiece]:
    """Yields the properties of a MODEL block that become parts of SQLMesh's SQL."""
    slot = f"{tree.key.upper()} block"
    piece = _make_statement_piece(slot, model, tree, dialect)
    code = [effect for effect in piece.effects if effect.action == "code"]
    odd = [make_unknown_effect("CREATE TABLE", why) for why in _list_unsafe_properties(tree)]
    yield _StatementPiece(slot, model, piece.source, (*code, *odd), piece.undecided)


def _list_unsafe_properties(block: exp.Expr) -> Iterator[str]:
    for name in ("storage_format", "table_format"):
        value = _find_block_property(block, name)
        why = find_unsafe_format(value.name) if value is not None else None
        if why is not None:
            yield why
    for name in ("physical_properties", "virtual_properties"):
        value = _find_block_property(block, name)
        for pair in value.find_all(exp.EQ) if value is not None else ():
            why = find_unsafe_property(pair.left.name)
            if why is not None:
                yield why


def _make_statement_piece(
    slot: str, model: str | None, tree: exp.Expr, dialect: str
) -> _StatementPiece:
    effects, undecided = read_effects_of_literal_parts(tree, dialect)
    return _StatementPiece(slot, model, tree.sql(dialect=dialect), effects, undecided)


def _read_block_name(block: exp.Expr) -> str | None:
    value = _find_block_property(block, "name")
    name = names.read_table_name(value) if value is not None else None
    return ".".join(name) if name else None


def _read_block_dialect(block: exp.Expr) -> str | None:
    value = _find_block_property(block, "dialect")
    return value.name.lower() if value is not None else None


def _find_block_property(block: exp.Expr, name: str) -> exp.Expr | None:
    for item in block.expressions:
        if item.key == "property" and str(item.this).lower() == name:
            value = item.args.get("value")
            return value if hasattr(value, "key") else None
    return None


def _read_effects_of_yaml(text: str, dialect: str) -> FileEffects:
    if "{%" not in text and not _MAY_BE_EXECUTED.search(text):
        return FileEffects()
    try:
        document = read_yaml(text)
    except UnfitYaml:
        # A configuration may hold Jinja that is not YAML before it is rendered.
        effects = tuple(list_template_effects(text, dialect)) if "{%" in text else ()
        return _make_file_effects([_StatementPiece("template", None, text, effects, True)], dialect)
    pieces: list[_StatementPiece] = []
    for slot, sql in _iterate_executed_statements(document):
        if "{{" in sql or "{%" in sql:
            pieces.append(
                _StatementPiece(slot, None, sql, tuple(list_template_effects(sql, dialect)), True)
            )
            continue
        trees = _parse_project_sql(sql, dialect)
        if trees is None:
            why = (make_unknown_effect("statement", NOT_PARSED),)
            pieces.append(_StatementPiece(slot, None, sql, why, False))
            continue
        pieces += [_make_statement_piece(slot, None, tree, dialect) for tree in trees]
    return _make_file_effects(pieces, dialect)


def _iterate_executed_statements(document: Any) -> Iterator[tuple[str, str]]:
    """Yields slot and text of every statement in a configuration, at any depth."""
    if isinstance(document, list):
        for item in document:
            yield from _iterate_executed_statements(item)
    elif isinstance(document, dict):
        for name, value in document.items():
            if name in _SLOTS:
                for item in value if isinstance(value, list) else [value]:
                    sql = item.get("sql") if isinstance(item, dict) else item
                    if isinstance(sql, str):
                        yield str(name), sql
            else:
                yield from _iterate_executed_statements(value)


def _make_file_effects(pieces: list[_StatementPiece], dialect: str) -> FileEffects:
    found: list[JudgedEffect] = []
    temporary: set[Any] = set()
    for piece in pieces:
        own = _make_own_objects(piece.model)
        statement = RenderedStatement(piece.slot, piece.model, piece.source, piece.source, dialect)
        for effect in piece.effects:
            if effect.action == "nothing" and effect.target is not None:
                temporary.add(effect.target)
            severity = weigh_effect(effect, own, temporary)
            if severity is not None:
                found.append(
                    JudgedEffect(statement, effect, severity, "", describe_effect(effect, own))
                )
    undecided = tuple(piece.source[:200] for piece in pieces if piece.undecided)
    return FileEffects(tuple(found), undecided)


def _make_own_objects(model: str | None) -> OwnObjects:
    objects = {names.THIS_MODEL}
    if model is not None:
        parts = tuple(model.split("."))
        objects |= {parts, ("", *parts)}
    return OwnObjects("its environment", "", objects=frozenset(objects))
