"""Statements that sqlglot keeps as text: a short list of forms, read word by word.

Everything else of the kind is unknown. The forms are those of Spark's reference and of the SQL
extensions of Delta and Iceberg.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import Dialect
from sqlglot.errors import SqlglotError

from ci_bot.worker.sql_effects import spark_settings
from ci_bot.worker.sql_effects.effects import (
    NOT_LISTED,
    RUNS_JAVA,
    SPARK,
    THIS_MODEL,
    Action,
    ObjectName,
    SqlEffect,
    make_unknown_effect,
)

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.tokens import Token

_RESOURCES = frozenset({"JAR", "JARS", "FILE", "FILES", "ARCHIVE", "ARCHIVES"})
# What may follow the name in ALTER TABLE, by its first words.
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


def read_command_effect(tree: exp.Expr, dialect: str) -> SqlEffect:
    """Reads the effect of a statement that the parser keeps as text.

    Args:
        tree: sqlglot's `Command`: its first word or words, and the rest as text.
    """
    head, rest = tree.name.upper().split(), tree.text("expression").strip()
    word = head[0] if head else ""
    if word == "SHOW":
        return SqlEffect("nothing", "SHOW")
    if word == "SET":
        return spark_settings.read_set_effect(rest, dialect, parsed=False)
    tokens = _tokenize_command(rest, dialect) if dialect in SPARK else None
    if tokens is None:
        return make_unknown_effect(word, NOT_LISTED)
    words = [*head, *(token.text.upper() for token in tokens)]
    if RUNS_JAVA & {token.text.lower() for token in tokens}:
        return SqlEffect("code", word)  # in a condition, say; there is no tree to find it in
    return (
        _read_resource(words)
        or _create_function(words)
        or _read_alter(tokens, words)
        or _read_maintenance(tokens, words)
        or make_unknown_effect(word, "this form is not on the list")
    )


def _tokenize_command(text: str, dialect: str) -> list[Token] | None:
    """The words of a command; None if a comment could hide some from one of two readers."""
    try:
        tokens: list[Token] = Dialect.get_or_raise(dialect).tokenize(text)
    except SqlglotError:
        return None
    return None if any(token.comments for token in tokens) else tokens


def _read_resource(words: list[str]) -> SqlEffect | None:
    if words[:1] == ["ADD"] and len(words) > 1 and words[1] in _RESOURCES:
        return SqlEffect("code", f"ADD {words[1]}")
    return None


def _create_function(words: list[str]) -> SqlEffect | None:
    head = [word for word in words[:5] if word not in ("OR", "REPLACE", "TEMPORARY", "TEMP")]
    if head[:2] == ["CREATE", "FUNCTION"]:
        return SqlEffect("code", "CREATE FUNCTION")
    return None


def _read_alter(tokens: list[Token], words: list[str]) -> SqlEffect | None:
    if words[:2] not in (["ALTER", "TABLE"], ["ALTER", "VIEW"]):
        return None
    target, at = _read_name(tokens, 1)  # TABLE, and then the name
    for head, action in _ALTERS:
        if target is not None and tuple(words[at + 1 :][: len(head)]) == head:
            return SqlEffect(action, f"{words[0]} {words[1]} {' '.join(head)}", target)
    return None


def _read_maintenance(tokens: list[Token], words: list[str]) -> SqlEffect | None:
    if words[:3] == ["MSCK", "REPAIR", "TABLE"]:
        target, at = _read_name(tokens, 1)
        return SqlEffect("describes", "MSCK REPAIR TABLE", target) if at == len(tokens) else None
    if words[:1] == ["OPTIMIZE"]:
        return SqlEffect("describes", "OPTIMIZE", _read_name(tokens, 0)[0])
    if words[:1] == ["VACUUM"]:
        return SqlEffect("alters", "VACUUM", _read_name(tokens, 0)[0])
    return None


def _read_name(tokens: list[Token], at: int) -> tuple[ObjectName | None, int]:
    """The dotted name at a place, and the place after it."""
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
