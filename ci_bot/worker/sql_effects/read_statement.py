"""Reads the effects of a statement from its text, as the engine gets it.

The text is parsed. A statement that cannot be parsed, or that is none of the kinds below, is
unknown. Inside a known kind, also inside a query, every nested statement and every call of a
program is found. Only a statement that the parser keeps as text is read word by word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import sqlglot
import sqlmesh  # noqa: F401 - teaches the parser its macros
from sqlglot import Dialect
from sqlglot.errors import SqlglotError

from ci_bot.worker.runtime import silence_worker_log
from ci_bot.worker.sql_effects import effects, spark_settings
from ci_bot.worker.sql_effects.effects import (
    NOT_LISTED,
    RUNS_JAVA,
    SPARK,
    THIS_MODEL,
    Action,
    ObjectName,
    SqlEffect,
    find_hidden_meaning,
    list_code_effects,
    make_unknown_effect,
)

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.tokens import Token

_QUERIES = frozenset(
    {"select", "union", "intersect", "except", "subquery", "values", "describe", "show"}
)
_MACROS = ("macro", "jinja")
_SESSION = frozenset({"uncache", "declare", "semicolon"})
# Nodes that have an effect of their own, in any part of a tree.
_ACTING_NODES = frozenset(
    {
        "insert", "update", "delete", "merge", "create", "drop", "alter", "truncatetable",
        "loaddata", "copy", "command", "grant", "revoke", "comment", "use", "set", "kill",
        "attach", "detach", "install", "export", "into", "execute", "pragma", "analyze",
    }
)  # fmt: skip
# The first words of such nodes, and the words of the readers below. A query with none of these
# words only reads.
ACTING_WORDS = frozenset(
    (_ACTING_NODES - {"truncatetable", "loaddata", "command"})
    | {"truncate", "load", "call", "exec", "refresh", "cache", "uncache", "declare"}
)


@lru_cache(maxsize=4_096)
def list_statement_effects(text: str, dialect: str) -> tuple[SqlEffect, ...]:
    """Lists the effects of the statements in `text`; at least one.

    Args:
        text: the text that the engine gets, with macros and Jinja rendered.
        dialect: sqlglot's name of the engine's dialect.
    """
    with silence_worker_log("sqlglot"):
        try:
            tokens = Dialect.get_or_raise(dialect).tokenize(text)
            why = find_hidden_meaning(text, tokens, dialect)
            if why is not None:
                return (make_unknown_effect("statement", why),)
            trees = Dialect.get_or_raise(dialect).parser().parse(tokens, text)
        except Exception as error:  # for `MAP(a)` the parser fails with an IndexError
            return (
                make_unknown_effect("statement", f"it cannot be parsed ({type(error).__name__})"),
            )
        try:
            found = [
                e
                for tree in trees
                if tree is not None
                for e in _list_executed_effects(tree, dialect)
            ]
        except Exception as error:
            # A tree of unexpected shape, such as `DELETE t`, which Spark accepts.
            return (
                make_unknown_effect(
                    "statement", f"it cannot be understood ({type(error).__name__})"
                ),
            )
    return tuple(found) or (SqlEffect("nothing", "nothing"),)


def _list_executed_effects(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    """Yields the effects of a statement in the form that the engine gets."""
    word = (tree.name.split() or [""])[0].upper() if tree.key == "command" else ""
    if (
        word
        and dialect in SPARK
        and word not in ("SET", "SHOW")
        and _has_statement_variable(tree, dialect)
    ):
        # If SQLMesh's parser does not know a statement, SQLMesh keeps it as text, with the names of
        # variables.
        yield SqlEffect(
            "fails",
            word,
            detail=f"SQLMesh keeps {word} as text and puts nothing in for the variables in it, so "
            "Spark gets the @; write it in Jinja, "
            "JINJA_STATEMENT_BEGIN; ... {{ this_model }} ...; JINJA_END",
        )
    else:
        yield from list_tree_effects(tree, dialect)


def _has_statement_variable(command: Any, dialect: str) -> bool:
    try:
        tokens = Dialect.get_or_raise(dialect).tokenize(command.text("expression"))
    except SqlglotError:
        return False
    return any(token.token_type.name == "PARAMETER" and token.text == "@" for token in tokens)


def list_tree_effects(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    """Yields the effects of one parsed statement and of all statements inside it."""
    yield from _list_node_effects(tree, dialect)
    if any(node.key.startswith(_MACROS) for node in tree.walk()):
        yield make_unknown_effect(_name_statement(tree), "a macro in it was not resolved")
    yield from _list_nested_effects(tree, dialect)


def _list_nested_effects(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    for node in tree.walk():
        if (
            node is not tree
            and node.key in _ACTING_NODES
            and not _does_node_belong_to_statement(node, tree)
        ):
            yield from _list_node_effects(node, dialect)
    yield from list_code_effects(tree)


def _is_macro_node(node: exp.Expr) -> bool:
    """Whether SQLMesh would replace a node; in names it does so also inside quotes."""
    return node.key.startswith(_MACROS) or (node.key == "identifier" and "@" in node.this)


def read_effects_of_unrendered_statement(
    tree: exp.Expr, dialect: str
) -> tuple[tuple[SqlEffect, ...], bool]:
    """Reads the literal effects of an unrendered statement, and whether a macro could add some.

    Statements in a macro's arguments count, and strings that are SQL. If a macro computes the
    target of an effect, the effect is left out: only the running macro would show it.
    """
    macros = [node for node in tree.walk() if _is_macro_node(node)]
    found = (
        []
        if _is_macro_node(tree) or tree.key in ("model", "audit")
        else [*_list_node_effects(tree, dialect)]
    )
    found += _list_nested_effects(tree, dialect)
    for macro in macros:
        for node in macro.walk():
            if node.key == "literal" and node.is_string and " " in node.name.strip():
                found += read_effects_of_literal_sql(node.name, dialect) or ()
    literal = [e for e in found if not (macros and e.target is None and _has_effect_target(e))]
    return tuple(literal), bool(macros)


def _has_effect_target(effect: SqlEffect) -> bool:
    return (
        effect.action not in ("nothing", "code", "unknown", "directs", "sets", "fails")
        and not effect.detail
    )


def read_effects_of_literal_sql(text: str, dialect: str) -> tuple[SqlEffect, ...] | None:
    """Reads the effects of a text that may be SQL; None if it is no SQL, or no whole statement."""
    with silence_worker_log("sqlglot"):
        try:
            trees = sqlglot.parse(text, dialect=dialect)
        except Exception:  # it is no SQL, or SQL on which the parser itself fails
            return None
        found: list[SqlEffect] = []
        for tree in trees:
            if tree is not None and tree.key in (_QUERIES | _ACTING_NODES | _SESSION | {"cache"}):
                found += read_effects_of_unrendered_statement(tree, dialect)[0]
    return None if any(effect.action == "unknown" for effect in found) else tuple(found)


def _does_node_belong_to_statement(node: exp.Expr, tree: exp.Expr) -> bool:
    """Whether a nested node is only a part of the statement, such as an action of MERGE."""
    return tree.key == "alter" or (node.parent is not None and node.parent.key == "when")


def _list_node_effects(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    if tree.key in _QUERIES or tree.key in _SESSION:
        yield SqlEffect("nothing", _name_statement(tree))
    elif tree.key == "command":
        yield _read_command_effect(tree, dialect)
    elif tree.key == "set":
        yield spark_settings.read_set_effect(_drop_first_word(tree, dialect), dialect, parsed=True)
    elif tree.key in _READERS:
        yield from _READERS[tree.key](tree, dialect)
    else:
        yield make_unknown_effect(_name_statement(tree), NOT_LISTED)


def _read_insert_effect(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    kind = "INSERT OVERWRITE" if tree.args.get("overwrite") else "INSERT"
    if tree.this is not None and tree.this.key == "directory":
        yield SqlEffect("writes", f"{kind} DIRECTORY", detail=tree.this.name)
    else:
        yield SqlEffect("writes", kind, effects.read_table_name(tree.this))


def _read_effect_of_row_changes(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    for table in (tree.this, *(tree.args.get("tables") or ())):
        yield SqlEffect("writes", _name_statement(tree), effects.read_table_name(table))


def _read_load_effect(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    """Reads LOAD DATA: Spark moves the files to the table's directory; LOCAL copies them."""
    yield from _read_effect_of_row_changes(tree, dialect)
    if not tree.args.get("local"):
        path = tree.args.get("inpath")
        yield SqlEffect("moves", _name_statement(tree), detail=f"the files of {path or 'a path'}")


def _read_truncate_effect(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    for table in tree.expressions:
        yield SqlEffect("writes", "TRUNCATE", effects.read_table_name(table))


def _read_copy_effect(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    """Reads COPY: COPY INTO writes a table, and a COPY to files writes none."""
    yield SqlEffect(
        "writes",
        "COPY",
        effects.read_table_name(tree.this) if tree.args.get("kind") else None,
    )


def _read_describe_effect(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    kind = str(tree.args.get("kind") or "").upper()
    target = effects.read_table_name(tree.this)
    if target is not None and kind == "COLUMN":
        target = target[:-1]
    schema = kind in ("SCHEMA", "DATABASE", "NAMESPACE", "TABLES IN", "TABLES FROM")
    yield SqlEffect("describes", _name_statement(tree), target, schema=schema)


def _read_grant_effect(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    kind = str(tree.args.get("kind") or "TABLE").upper()
    if kind in ("TABLE", "VIEW", "SCHEMA", "DATABASE"):
        target = effects.read_table_name(tree.args.get("securable"))
        schema = kind in ("SCHEMA", "DATABASE")
        yield SqlEffect("grants", _name_statement(tree), target, schema=schema)
    else:
        yield make_unknown_effect(_name_statement(tree), f"rights on {kind}")


def _read_use_effect(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    kind = tree.args.get("kind")
    word = kind.name.upper() if kind is not None else ""
    if word == "WAREHOUSE":  # Snowflake's word for a cluster
        yield SqlEffect("nothing", "USE")
    else:
        target = effects.read_table_name(tree.this)
        schema = word in ("", "SCHEMA", "DATABASE")
        yield SqlEffect("directs", f"USE {word}".strip(), target if schema else None, schema=True)


def _read_refresh_effect(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    kind = str(tree.args.get("kind") or "").upper()
    if kind in ("", "TABLE") and dialect in SPARK:
        yield SqlEffect("nothing", "REFRESH")
    else:
        yield make_unknown_effect("REFRESH", f"of {kind or 'something'}")


def _read_cache_effect(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    """Reads CACHE TABLE, which with a query makes a temporary view."""
    query = tree.args.get("expression")
    yield SqlEffect(
        "nothing",
        "CACHE",
        effects.read_table_name(tree.this) if query is not None else None,
    )


def _read_into_effect(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    yield SqlEffect("creates", "SELECT INTO", effects.read_table_name(tree.this))


_READERS: dict[str, Callable[[Any, str], Iterator[SqlEffect]]] = {
    "insert": _read_insert_effect,
    "update": _read_effect_of_row_changes,
    "delete": _read_effect_of_row_changes,
    "merge": _read_effect_of_row_changes,
    "loaddata": _read_load_effect,
    "truncatetable": _read_truncate_effect,
    "copy": _read_copy_effect,
    "create": effects.list_create_effects,
    "drop": effects.list_drop_effects,
    "alter": effects.list_alter_effects,
    "analyze": _read_describe_effect,
    "comment": _read_describe_effect,
    "grant": _read_grant_effect,
    "revoke": _read_grant_effect,
    "use": _read_use_effect,
    "refresh": _read_refresh_effect,
    "cache": _read_cache_effect,
    "into": _read_into_effect,
}


def _name_statement(tree: exp.Expr) -> str:
    key: str = tree.key
    return {"truncatetable": "TRUNCATE", "loaddata": "LOAD DATA"}.get(key, key.upper())


def _drop_first_word(tree: exp.Expr, dialect: str) -> str:
    text: str = tree.sql(dialect=dialect, comments=False)
    return text.partition(" ")[2]


# Statements that sqlglot keeps as text: a short list of forms, read word by word. All other forms
# are unknown. The list comes from Spark's reference and from the SQL extensions of Delta and
# Iceberg.


_RESOURCES = frozenset({"JAR", "JARS", "FILE", "FILES", "ARCHIVE", "ARCHIVES"})
# The clauses after the name in ALTER TABLE, by their first words.
_ALTERS: tuple[tuple[tuple[str, ...], Action], ...] = (
    (("UNSET", "TBLPROPERTIES"), "describes"),
    (("WRITE",), "describes"),
    (("SET", "IDENTIFIER", "FIELDS"), "describes"),
    (("DROP", "IDENTIFIER", "FIELDS"), "describes"),
    (("RECOVER", "PARTITIONS"), "describes"),
    (("CREATE", "BRANCH"), "alters"),
    (("CREATE", "TAG"), "alters"),
    (("DROP", "BRANCH"), "alters"),
    (("DROP", "TAG"), "alters"),
    (("ADD", "PARTITION", "FIELD"), "alters"),
    (("DROP", "PARTITION", "FIELD"), "alters"),
    (("REPLACE", "PARTITION", "FIELD"), "alters"),
    (("DROP", "COLUMN"), "alters"),
    (("DROP", "COLUMNS"), "alters"),
    (("REPLACE", "COLUMNS"), "alters"),
    (("DROP", "PARTITION"), "alters"),
    (("DROP", "IF", "EXISTS", "PARTITION"), "alters"),
)


def _read_command_effect(tree: exp.Expr, dialect: str) -> SqlEffect:
    """Reads the effect of a statement that the parser keeps as text.

    Args:
        tree: sqlglot's `Command`, which has its first words and the rest as text.
    """
    head, rest = tree.name.upper().split(), tree.text("expression").strip()
    word = head[0] if head else ""
    if word == "SHOW":
        return SqlEffect("nothing", "SHOW")
    if word == "SET":
        return spark_settings.read_set_effect(rest, dialect, parsed=False)
    tokens = _tokenize_statement(rest, dialect) if dialect in SPARK else None
    if tokens is None:
        return make_unknown_effect(word, NOT_LISTED)
    words = [*head, *(token.text.upper() for token in tokens)]
    if RUNS_JAVA & {token.text.lower() for token in tokens}:
        return SqlEffect("code", word)  # for example in a condition; there is no tree to search
    return (
        _read_add_resource_effect(words)
        or _read_create_function_effect(words)
        or _read_alter_effect(tokens, words)
        or _read_maintenance_effect(tokens, words)
        or make_unknown_effect(word, "this form is not on the list")
    )


def _tokenize_statement(text: str, dialect: str) -> list[Token] | None:
    """Splits a command into its words.

    None if it cannot be split, or has comments, which two engines may read differently.
    """
    try:
        tokens: list[Token] = Dialect.get_or_raise(dialect).tokenize(text)
    except SqlglotError:
        return None
    return None if any(token.comments for token in tokens) else tokens


def _read_add_resource_effect(words: list[str]) -> SqlEffect | None:
    if words[:1] == ["ADD"] and len(words) > 1 and words[1] in _RESOURCES:
        return SqlEffect("code", f"ADD {words[1]}")
    return None


def _read_create_function_effect(words: list[str]) -> SqlEffect | None:
    head = [word for word in words[:5] if word not in ("OR", "REPLACE", "TEMPORARY", "TEMP")]
    if head[:2] == ["CREATE", "FUNCTION"]:
        return SqlEffect("code", "CREATE FUNCTION")
    return None


def _read_alter_effect(tokens: list[Token], words: list[str]) -> SqlEffect | None:
    if words[:2] not in (["ALTER", "TABLE"], ["ALTER", "VIEW"]):
        return None
    target, at = read_dotted_name(tokens, 1)  # TABLE, and then the name
    for head, action in _ALTERS:
        if target is not None and tuple(words[at + 1 :][: len(head)]) == head:
            return SqlEffect(action, f"{words[0]} {words[1]} {' '.join(head)}", target)
    return None


def _read_maintenance_effect(tokens: list[Token], words: list[str]) -> SqlEffect | None:
    if words[:3] == ["MSCK", "REPAIR", "TABLE"]:
        target, at = read_dotted_name(tokens, 1)
        return SqlEffect("describes", "MSCK REPAIR TABLE", target) if at == len(tokens) else None
    if words[:1] == ["OPTIMIZE"]:
        return SqlEffect("describes", "OPTIMIZE", read_dotted_name(tokens, 0)[0])
    if words[:1] == ["VACUUM"]:
        return SqlEffect("alters", "VACUUM", read_dotted_name(tokens, 0)[0])
    return None


def read_dotted_name(tokens: list[Token], at: int) -> tuple[ObjectName | None, int]:
    """Reads the dotted name that begins at token `at`.

    Returns:
        The name, or None if there is none, and the position after it.
    """
    parts: list[str] = []
    if at < len(tokens) and tokens[at].token_type.name == "PARAMETER":
        own = at + 1 < len(tokens) and tokens[at + 1].text.lower() == "this_model"
        return (THIS_MODEL if own else None), at + 2
    while at < len(tokens):
        token = tokens[at]
        if token.token_type.name in ("STRING", "L_PAREN", "DOT"):
            return None, at
        parts.append(token.text.lower())
        at += 1
        if at >= len(tokens) or tokens[at].token_type.name != "DOT":
            break
        at += 1
    return (tuple(parts) or None), at
