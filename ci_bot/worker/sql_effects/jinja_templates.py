"""The SQL that stands literally in a Jinja template, found without rendering it.

The template is only taken apart into its tokens. Text between two tags, and each string inside a
tag, is read by itself; so is the text without its tags.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jinja2 import Environment, TemplateSyntaxError
from sqlglot import Dialect
from sqlglot.errors import SqlglotError

from ci_bot.worker.sql_effects.effects import THIS_MODEL, Action, ObjectName, SqlEffect
from ci_bot.worker.sql_effects.read_statement import literal_effects, read_literal_effects

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.tokens import Token

# Where a template puts in a value: a macro of SQLMesh, whose value is not known either.
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


def literal_parts(tree: exp.Expr, dialect: str) -> tuple[tuple[SqlEffect, ...], bool]:
    """What of an unrendered statement stands there literally, and whether rendering could add."""
    if tree.key.startswith("jinja"):
        return tuple(list_literal_effects(tree.name, dialect)), True
    return read_literal_effects(tree, dialect)


def list_literal_effects(template: str, dialect: str) -> Iterator[SqlEffect]:
    """What the literal parts of a template do, each once; parts that mean nothing say nothing."""
    yield from dict.fromkeys(_list_literal_effects(template, dialect))


def _list_literal_effects(template: str, dialect: str) -> Iterator[SqlEffect]:
    try:
        pieces, strings = _taken_apart(template)
    except TemplateSyntaxError:
        pieces, strings = [template], []
    yield from literal_effects(" ".join(pieces), dialect) or ()
    for piece in pieces:
        read = literal_effects(piece, dialect)
        yield from read if read is not None else _list_cut_statements(piece, dialect)
    for text in strings:
        # A word alone is a value, and parses as the name of a column.
        yield from (literal_effects(text, dialect) or ()) if " " in text.strip() else ()


def _taken_apart(template: str) -> tuple[list[str], list[str]]:
    """The text between block tags, with a macro for each value; and the strings inside tags."""
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


def _list_cut_statements(text: str, dialect: str) -> Iterator[SqlEffect]:
    """Statements whose rest a tag has cut off, by their first two words and their name."""
    try:
        tokens = Dialect.get_or_raise(dialect).tokenize(text)
    except SqlglotError:
        return
    starts = [0, *(n + 1 for n, t in enumerate(tokens) if t.token_type.name == "SEMICOLON")]
    for start in starts:
        words = tuple(token.text.upper() for token in tokens[start : start + 2])
        action = _VERBS.get(words) if len(words) > 1 else None  # type: ignore[arg-type]
        if action is not None:
            target = _read_name(tokens[start + 2 :])
            yield SqlEffect(action, " ".join(words), target, schema="SCHEMA" in words)


def _read_name(tokens: list[Token]) -> ObjectName | None:
    rest = list(tokens)
    while rest and rest[0].text.upper() in _BETWEEN:
        rest.pop(0)
    if rest and rest[0].token_type.name == "PARAMETER":
        own = len(rest) > 1 and rest[1].text.lower() in _OWN
        return THIS_MODEL if own else None
    parts: list[str] = []
    for at in range(0, len(rest), 2):
        parts.append(rest[at].text.lower())
        if at + 1 >= len(rest) or rest[at + 1].token_type.name != "DOT":
            break
    return tuple(parts) or None
