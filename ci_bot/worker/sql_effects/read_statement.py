"""The text of a statement, as an engine is given it, to what it does.

Nothing is judged by words in the text: the text is parsed, and what cannot be parsed, or is not one
of the kinds below, is unknown. Inside of a known kind, queries included, every nested statement and
every call of a program is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import sqlmesh  # noqa: F401 - teaches the parser its macros
from sqlglot import Dialect
from sqlglot.errors import SqlglotError

from ci_bot.worker.runtime import silence_log
from ci_bot.worker.sql_effects import definitions, effects, spark_settings
from ci_bot.worker.sql_effects.commands import read_command_effect
from ci_bot.worker.sql_effects.effects import (
    NOT_LISTED,
    SPARK,
    SqlEffect,
    find_hidden_meaning,
    list_code_effects,
    make_unknown_effect,
)

if TYPE_CHECKING:
    from sqlglot import exp

_QUERIES = frozenset(
    {"select", "union", "intersect", "except", "subquery", "values", "describe", "show"}
)
_MACROS = ("macro", "jinja")
_SESSION = frozenset({"uncache", "declare", "semicolon"})
# Nodes that do something by themselves, wherever in a tree they stand.
_DEEDS = frozenset(
    {
        "insert", "update", "delete", "merge", "create", "drop", "alter", "truncatetable",
        "loaddata", "copy", "command", "grant", "revoke", "comment", "use", "set", "kill",
        "attach", "detach", "install", "export", "into", "execute", "pragma", "analyze",
    }
)  # fmt: skip
# The words that such nodes begin with, and those of the readers below. Without any of them a query
# does nothing besides.
ACTING_WORDS = frozenset(
    (_DEEDS - {"truncatetable", "loaddata", "command"})
    | {"truncate", "load", "call", "exec", "refresh", "cache", "uncache", "declare"}
)


@lru_cache(maxsize=4_096)
def list_statement_effects(text: str, dialect: str) -> tuple[SqlEffect, ...]:
    """Lists the effects of the statements in `text`; at least one.

    Args:
        text: as the engine gets it: macros and Jinja are rendered.
        dialect: sqlglot's name of the engine's dialect.
    """
    with silence_log("sqlglot"):
        try:
            tokens = Dialect.get_or_raise(dialect).tokenize(text)
            why = find_hidden_meaning(text, tokens, dialect)
            if why is not None:
                return (make_unknown_effect("statement", why),)
            trees = Dialect.get_or_raise(dialect).parser().parse(tokens, text)
        except (SqlglotError, ValueError, AttributeError, RecursionError) as error:
            return (
                make_unknown_effect("statement", f"it cannot be parsed ({type(error).__name__})"),
            )
        try:
            found = [
                e for tree in trees if tree is not None for e in _read_given_form(tree, dialect)
            ]
        except Exception as error:
            # A tree of a shape that nobody expected: `DELETE t` is one, which Spark takes.
            return (
                make_unknown_effect(
                    "statement", f"it cannot be understood ({type(error).__name__})"
                ),
            )
    return tuple(found) or (SqlEffect("nothing", "nothing"),)


def _read_given_form(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    """What a statement does in the form that the engine is given."""
    word = (tree.name.split() or [""])[0].upper() if tree.key == "command" else ""
    if word and dialect in SPARK and word not in ("SET", "SHOW") and _has_variable(tree, dialect):
        # SQLMesh keeps what its parser cannot take apart as text, with the names of variables.
        yield SqlEffect(
            "fails",
            word,
            detail=f"SQLMesh keeps {word} as text and puts nothing in for the variables in it, so "
            "Spark gets the @; write it in Jinja, "
            "JINJA_STATEMENT_BEGIN; ... {{ this_model }} ...; JINJA_END",
        )
    else:
        yield from list_tree_effects(tree, dialect)


def _has_variable(command: Any, dialect: str) -> bool:
    try:
        tokens = Dialect.get_or_raise(dialect).tokenize(command.text("expression"))
    except SqlglotError:
        return False
    return any(token.token_type.name == "PARAMETER" and token.text == "@" for token in tokens)


def list_tree_effects(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    """Yields the effects of one parsed statement and of everything inside it."""
    yield from _list_effects_of(tree, dialect)
    if any(node.key.startswith(_MACROS) for node in tree.walk()):
        yield make_unknown_effect(_object_kind(tree), "a macro in it was not resolved")
    yield from _read_nested(tree, dialect)


def _read_nested(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    for node in tree.walk():
        if node is not tree and node.key in _DEEDS and not _belongs_to_statement(node, tree):
            yield from _list_effects_of(node, dialect)
    yield from list_code_effects(tree)


def _is_macro(node: exp.Expr) -> bool:
    """Whether SQLMesh would put something in for a node; in names it does so even in quotes."""
    return node.key.startswith(_MACROS) or (node.key == "identifier" and "@" in node.this)


def read_literal_effects(tree: exp.Expr, dialect: str) -> tuple[tuple[SqlEffect, ...], bool]:
    """Reads the literal effects of an unrendered statement, and whether a macro could add to them.

    Statements that are arguments of a macro count, and strings that are SQL. An effect whose target
    a macro computes is left out: only running it would say more.
    """
    macros = [node for node in tree.walk() if _is_macro(node)]
    found = (
        []
        if _is_macro(tree) or tree.key in ("model", "audit")
        else [*_list_effects_of(tree, dialect)]
    )
    found += _read_nested(tree, dialect)
    for macro in macros:
        for node in macro.walk():
            if node.key == "literal" and node.is_string and " " in node.name.strip():
                found += literal_effects(node.name, dialect) or ()
    literal = [e for e in found if not (macros and e.target is None and _has_target(e))]
    return tuple(literal), bool(macros)


def _has_target(effect: SqlEffect) -> bool:
    return (
        effect.action not in (*("nothing", "code", "unknown", "directs", "sets", "fails"),)
        and not effect.detail
    )


def literal_effects(text: str, dialect: str) -> tuple[SqlEffect, ...] | None:
    """What a piece of text does if it is SQL; None if it is none, or means nothing by itself."""
    with silence_log("sqlglot"):
        try:
            trees = (
                Dialect.get_or_raise(dialect)
                .parser()
                .parse(Dialect.get_or_raise(dialect).tokenize(text), text)
            )
        except (SqlglotError, ValueError, AttributeError, RecursionError):
            return None
        found: list[SqlEffect] = []
        for tree in trees:
            if tree is not None and tree.key in (_QUERIES | _DEEDS | _SESSION | {"cache"}):
                found += read_literal_effects(tree, dialect)[0]
    return None if any(effect.action == "unknown" for effect in found) else tuple(found)


def _belongs_to_statement(node: exp.Expr, tree: exp.Expr) -> bool:
    """Whether a nested node is a part of the statement, and no statement of its own."""
    return tree.key == "alter" or (node.parent is not None and node.parent.key == "when")


def _list_effects_of(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    if tree.key in _QUERIES or tree.key in _SESSION:
        yield SqlEffect("nothing", _object_kind(tree))
    elif tree.key == "command":
        yield read_command_effect(tree, dialect)
    elif tree.key == "set":
        yield spark_settings.read_set_effect(_after_word(tree, dialect), dialect, parsed=True)
    elif tree.key in _READERS:
        yield from _READERS[tree.key](tree, dialect)
    else:
        yield make_unknown_effect(_object_kind(tree), NOT_LISTED)


def _read_insert(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    kind = "INSERT OVERWRITE" if tree.args.get("overwrite") else "INSERT"
    if tree.this is not None and tree.this.key == "directory":
        yield SqlEffect("writes", f"{kind} DIRECTORY", detail=tree.this.name)
    else:
        yield SqlEffect("writes", kind, effects.read_table_name(tree.this))


def _read_row_changes(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    for table in (tree.this, *(tree.args.get("tables") or ())):
        yield SqlEffect("writes", _object_kind(tree), effects.read_table_name(table))


def _read_load(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    """Spark moves the files into the table's directory; with LOCAL it copies them."""
    yield from _read_row_changes(tree, dialect)
    if not tree.args.get("local"):
        path = tree.args.get("inpath")
        yield SqlEffect("moves", _object_kind(tree), detail=f"the files of {path or 'a path'}")


def _read_truncate(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    for table in tree.expressions:
        yield SqlEffect("writes", "TRUNCATE", effects.read_table_name(table))


def _read_copy(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    """COPY INTO a table; a COPY to files has no table to write."""
    yield SqlEffect(
        "writes", "COPY", effects.read_table_name(tree.this) if tree.args.get("kind") else None
    )


def _read_describe(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    kind = str(tree.args.get("kind") or "").upper()
    target = effects.read_table_name(tree.this)
    if target is not None and kind == "COLUMN":
        target = target[:-1]
    schema = kind in ("SCHEMA", "DATABASE", "NAMESPACE", "TABLES IN", "TABLES FROM")
    yield SqlEffect("describes", _object_kind(tree), target, schema=schema)


def _read_grant(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    kind = str(tree.args.get("kind") or "TABLE").upper()
    if kind in ("TABLE", "VIEW", "SCHEMA", "DATABASE"):
        target = effects.read_table_name(tree.args.get("securable"))
        schema = kind in ("SCHEMA", "DATABASE")
        yield SqlEffect("grants", _object_kind(tree), target, schema=schema)
    else:
        yield make_unknown_effect(_object_kind(tree), f"rights on {kind}")


def _read_use(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    kind = tree.args.get("kind")
    word = kind.name.upper() if kind is not None else ""
    if word == "WAREHOUSE":  # Snowflake's word for a cluster
        yield SqlEffect("nothing", "USE")
    else:
        target = effects.read_table_name(tree.this)
        schema = word in ("", "SCHEMA", "DATABASE")
        yield SqlEffect("directs", f"USE {word}".strip(), target if schema else None, schema=True)


def _read_refresh(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    kind = str(tree.args.get("kind") or "").upper()
    if kind in ("", "TABLE") and dialect in SPARK:
        yield SqlEffect("nothing", "REFRESH")
    else:
        yield make_unknown_effect("REFRESH", f"of {kind or 'something'}")


def _read_cache(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    """With a query it makes a temporary view."""
    query = tree.args.get("expression")
    yield SqlEffect(
        "nothing", "CACHE", effects.read_table_name(tree.this) if query is not None else None
    )


def _read_into(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    yield SqlEffect("creates", "SELECT INTO", effects.read_table_name(tree.this))


_READERS: dict[str, Callable[[Any, str], Iterator[SqlEffect]]] = {
    "insert": _read_insert,
    "update": _read_row_changes,
    "delete": _read_row_changes,
    "merge": _read_row_changes,
    "loaddata": _read_load,
    "truncatetable": _read_truncate,
    "copy": _read_copy,
    "create": definitions.list_create_effects,
    "drop": definitions.list_drop_effects,
    "alter": definitions.list_alter_effects,
    "analyze": _read_describe,
    "comment": _read_describe,
    "grant": _read_grant,
    "revoke": _read_grant,
    "use": _read_use,
    "refresh": _read_refresh,
    "cache": _read_cache,
    "into": _read_into,
}


def _object_kind(tree: exp.Expr) -> str:
    key: str = tree.key
    return {"truncatetable": "TRUNCATE", "loaddata": "LOAD DATA"}.get(key, key.upper())


def _after_word(tree: exp.Expr, dialect: str) -> str:
    text: str = tree.sql(dialect=dialect, comments=False)
    return text.partition(" ")[2]
