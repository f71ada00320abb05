"""The literal SQL in a Jinja template, found without rendering it.

The template is only split into its tokens. The text between two tags is parsed, each string inside
a tag, and the whole text without its tags.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jinja2 import Environment, TemplateSyntaxError
from sqlglot import Dialect
from sqlglot.errors import SqlglotError

from ci_bot.worker.sql_effects.effects import THIS_MODEL, Action, ObjectName, SqlEffect
from ci_bot.worker.sql_effects.read_statement import read_literal_sql, read_unrendered_statement

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.tokens import Token

# Replaces a value of the template: a macro of SQLMesh, whose value is unknown, too.
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


def read_literal_parts(tree: exp.Expr, dialect: str) -> tuple[tuple[SqlEffect, ...], bool]:
    """Reads the literal effects of an unrendered statement; true if rendering could add some."""
    if tree.key.startswith("jinja"):
        return tuple(list_template_effects(tree.name, dialect)), True
    return read_unrendered_statement(tree, dialect)


def list_template_effects(template: str, dialect: str) -> Iterator[SqlEffect]:
    """Lists the effects of a template's literal parts, each once."""
    yield from dict.fromkeys(_iterate_template_effects(template, dialect))


def _iterate_template_effects(template: str, dialect: str) -> Iterator[SqlEffect]:
    try:
        pieces, strings = _split_template(template)
    except TemplateSyntaxError:
        pieces, strings = [template], []
    yield from read_literal_sql(" ".join(pieces), dialect) or ()
    for piece in pieces:
        read = read_literal_sql(piece, dialect)
        yield from read if read is not None else _list_cut_statements(piece, dialect)
    for text in strings:
        # A single word is a value, although it parses as the name of a column.
        yield from (read_literal_sql(text, dialect) or ()) if " " in text.strip() else ()


def _split_template(template: str) -> tuple[list[str], list[str]]:
    """Splits a template: the texts between block tags, with a macro for each value, and the strings
    inside tags.
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


def _list_cut_statements(text: str, dialect: str) -> Iterator[SqlEffect]:
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
            target = _read_cut_name(tokens[start + 2 :])
            yield SqlEffect(action, " ".join(words), target, schema="SCHEMA" in words)


def _read_cut_name(tokens: list[Token]) -> ObjectName | None:
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
