"""The text of a statement, as an engine is given it, to what it does.

Nothing is judged by words in the text: the text is parsed, and what cannot be parsed, or is not one
of the kinds below, is unknown. Inside of a known kind, queries included, every nested statement and
every call of a program is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import sqlmesh  # noqa: F401 - teaches the parser its macros
from sqlglot import Dialect
from sqlglot.errors import SqlglotError

from ci_bot.worker.runtime import silence_log
from ci_bot.worker.sql_effects import definitions, effects, spark_settings
from ci_bot.worker.sql_effects.commands import of_command
from ci_bot.worker.sql_effects.effects import SPARK, Effect, code_in, hidden, unknown

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
def effects_of(text: str, dialect: str) -> tuple[Effect, ...]:
    """What the statements in `text` do, with at least one effect.

    Args:
        text: as the engine gets it: macros and Jinja are rendered.
        dialect: sqlglot's name of the engine's dialect.
    """
    with silence_log("sqlglot"):
        try:
            tokens = Dialect.get_or_raise(dialect).tokenize(text)
            why = hidden(text, tokens, dialect)
            if why is not None:
                return (unknown("statement", why),)
            trees = Dialect.get_or_raise(dialect).parser().parse(tokens, text)
        except (SqlglotError, ValueError, AttributeError, RecursionError) as error:
            return (unknown("statement", f"it cannot be parsed ({type(error).__name__})"),)
        try:
            found = [e for tree in trees if tree is not None for e in _given(tree, dialect)]
        except Exception as error:
            # A tree of a shape that nobody expected: `DELETE t` is one, which Spark takes.
            return (unknown("statement", f"it cannot be understood ({type(error).__name__})"),)
    return tuple(found) or (Effect("nothing", "nothing"),)


def _given(tree: Any, dialect: str) -> Iterator[Effect]:
    """What a statement does in the form that the engine is given."""
    word = (tree.name.split() or [""])[0].upper() if tree.key == "command" else ""
    if word and dialect in SPARK and word not in ("SET", "SHOW") and _has_variable(tree, dialect):
        # SQLMesh keeps what its parser cannot take apart as text, with the names of variables.
        yield Effect(
            "fails",
            word,
            detail=f"SQLMesh keeps {word} as text and puts nothing in for the variables in it, so "
            "Spark gets the @; write it in Jinja, "
            "JINJA_STATEMENT_BEGIN; ... {{ this_model }} ...; JINJA_END",
        )
    else:
        yield from of_tree(tree, dialect)


def _has_variable(command: Any, dialect: str) -> bool:
    try:
        tokens = Dialect.get_or_raise(dialect).tokenize(command.text("expression"))
    except SqlglotError:
        return False
    return any(token.token_type.name == "PARAMETER" and token.text == "@" for token in tokens)


def of_tree(tree: Any, dialect: str) -> Iterator[Effect]:
    """What one parsed statement does, and everything inside it."""
    yield from _of_deed(tree, dialect)
    if any(node.key.startswith(_MACROS) for node in tree.walk()):
        yield unknown(_kind(tree), "a macro in it was not resolved")
    yield from _inside(tree, dialect)


def _inside(tree: Any, dialect: str) -> Iterator[Effect]:
    for node in tree.walk():
        if node is not tree and node.key in _DEEDS and not _belongs(node, tree):
            yield from _of_deed(node, dialect)
    yield from code_in(tree)


def _is_macro(node: Any) -> bool:
    """Whether SQLMesh would put something in for a node; in names it does so even in quotes."""
    return node.key.startswith(_MACROS) or (node.key == "identifier" and "@" in node.this)


def literals_in(tree: Any, dialect: str) -> tuple[tuple[Effect, ...], bool]:
    """What of an unrendered statement stands there literally, and whether a macro could add to it.

    Statements that are arguments of a macro count, and strings that are SQL. A deed whose target a
    macro computes is left out: only running it would say more.
    """
    macros = [node for node in tree.walk() if _is_macro(node)]
    found = [] if _is_macro(tree) or tree.key in ("model", "audit") else [*_of_deed(tree, dialect)]
    found += _inside(tree, dialect)
    for macro in macros:
        for node in macro.walk():
            if node.key == "literal" and node.is_string and " " in node.name.strip():
                found += literal_effects(node.name, dialect) or ()
    literal = [e for e in found if not (macros and e.target is None and _has_target(e))]
    return tuple(literal), bool(macros)


def _has_target(effect: Effect) -> bool:
    return (
        effect.action not in (*("nothing", "code", "unknown", "directs", "sets", "fails"),)
        and not effect.detail
    )


def literal_effects(text: str, dialect: str) -> tuple[Effect, ...] | None:
    """What a piece of text does if it is SQL; None where it is none, or means nothing by itself."""
    with silence_log("sqlglot"):
        try:
            trees = (
                Dialect.get_or_raise(dialect)
                .parser()
                .parse(Dialect.get_or_raise(dialect).tokenize(text), text)
            )
        except (SqlglotError, ValueError, AttributeError, RecursionError):
            return None
        found: list[Effect] = []
        for tree in trees:
            if tree is not None and tree.key in (_QUERIES | _DEEDS | _SESSION | {"cache"}):
                found += literals_in(tree, dialect)[0]
    return None if any(effect.action == "unknown" for effect in found) else tuple(found)


def _belongs(node: Any, tree: Any) -> bool:
    """Whether a nested node is a part of the statement, and no statement of its own."""
    return tree.key == "alter" or (node.parent is not None and node.parent.key == "when")


def _of_deed(tree: Any, dialect: str) -> Iterator[Effect]:
    if tree.key in _QUERIES or tree.key in _SESSION:
        yield Effect("nothing", _kind(tree))
    elif tree.key == "command":
        yield of_command(tree, dialect)
    elif tree.key == "set":
        yield spark_settings.of_set(_after_word(tree, dialect), dialect, parsed=True)
    elif tree.key in _READERS:
        yield from _READERS[tree.key](tree, dialect)
    else:
        yield unknown(_kind(tree), "this kind of statement is not on the list")


def _insert(tree: Any, dialect: str) -> Iterator[Effect]:
    kind = "INSERT OVERWRITE" if tree.args.get("overwrite") else "INSERT"
    if tree.this is not None and tree.this.key == "directory":
        yield Effect("writes", f"{kind} DIRECTORY", detail=tree.this.name)
    else:
        yield Effect("writes", kind, effects.of_table(tree.this))


def _rows(tree: Any, dialect: str) -> Iterator[Effect]:
    for table in (tree.this, *(tree.args.get("tables") or ())):
        yield Effect("writes", _kind(tree), effects.of_table(table))


def _load(tree: Any, dialect: str) -> Iterator[Effect]:
    """Spark moves the files into the table's directory; with LOCAL it copies them."""
    yield from _rows(tree, dialect)
    if not tree.args.get("local"):
        path = tree.args.get("inpath")
        yield Effect("moves", _kind(tree), detail=f"the files of {path or 'a path'}")


def _truncate(tree: Any, dialect: str) -> Iterator[Effect]:
    for table in tree.expressions:
        yield Effect("writes", "TRUNCATE", effects.of_table(table))


def _copy(tree: Any, dialect: str) -> Iterator[Effect]:
    """COPY INTO a table; a COPY to files has no table to write."""
    yield Effect("writes", "COPY", effects.of_table(tree.this) if tree.args.get("kind") else None)


def _describes(tree: Any, dialect: str) -> Iterator[Effect]:
    kind = str(tree.args.get("kind") or "").upper()
    target = effects.of_table(tree.this)
    if target is not None and kind == "COLUMN":
        target = target[:-1]
    schema = kind in ("SCHEMA", "DATABASE", "NAMESPACE", "TABLES IN", "TABLES FROM")
    yield Effect("describes", _kind(tree), target, schema=schema)


def _grants(tree: Any, dialect: str) -> Iterator[Effect]:
    kind = str(tree.args.get("kind") or "TABLE").upper()
    if kind in ("TABLE", "VIEW", "SCHEMA", "DATABASE"):
        target = effects.of_table(tree.args.get("securable"))
        schema = kind in ("SCHEMA", "DATABASE")
        yield Effect("grants", _kind(tree), target, schema=schema)
    else:
        yield unknown(_kind(tree), f"rights on {kind}")


def _use(tree: Any, dialect: str) -> Iterator[Effect]:
    kind = tree.args.get("kind")
    word = kind.name.upper() if kind is not None else ""
    if word == "WAREHOUSE":  # Snowflake's word for a cluster
        yield Effect("nothing", "USE")
    else:
        target = effects.of_table(tree.this)
        schema = word in ("", "SCHEMA", "DATABASE")
        yield Effect("directs", f"USE {word}".strip(), target if schema else None, schema=True)


def _refresh(tree: Any, dialect: str) -> Iterator[Effect]:
    kind = str(tree.args.get("kind") or "").upper()
    if kind in ("", "TABLE") and dialect in SPARK:
        yield Effect("nothing", "REFRESH")
    else:
        yield unknown("REFRESH", f"of {kind or 'something'}")


def _cache(tree: Any, dialect: str) -> Iterator[Effect]:
    """With a query it makes a temporary view."""
    query = tree.args.get("expression")
    yield Effect("nothing", "CACHE", effects.of_table(tree.this) if query is not None else None)


def _into(tree: Any, dialect: str) -> Iterator[Effect]:
    yield Effect("creates", "SELECT INTO", effects.of_table(tree.this))


_READERS: dict[str, Callable[[Any, str], Iterator[Effect]]] = {
    "insert": _insert,
    "update": _rows,
    "delete": _rows,
    "merge": _rows,
    "loaddata": _load,
    "truncatetable": _truncate,
    "copy": _copy,
    "create": definitions.of_create,
    "drop": definitions.of_drop,
    "alter": definitions.of_alter,
    "analyze": _describes,
    "comment": _describes,
    "grant": _grants,
    "revoke": _grants,
    "use": _use,
    "refresh": _refresh,
    "cache": _cache,
    "into": _into,
}


def _kind(tree: Any) -> str:
    key: str = tree.key
    return {"truncatetable": "TRUNCATE", "loaddata": "LOAD DATA"}.get(key, key.upper())


def _after_word(tree: Any, dialect: str) -> str:
    text: str = tree.sql(dialect=dialect, comments=False)
    return text.partition(" ")[2]
