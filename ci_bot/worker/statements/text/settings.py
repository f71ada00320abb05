"""SET: what the setting that it changes does to this session, or why Spark refuses it."""

from __future__ import annotations

import re

from ci_bot.worker.statements.effects import Effect, unknown
from ci_bot.worker.statements.spark_settings import is_fixed, meaning_of, spelling_of
from ci_bot.worker.statements.text.lexical import SPARK

_KEY = re.compile(r"^[\w.\-]+$")
# Elsewhere a session has few doors: who it is, and where its names lead.
_DOORS = re.compile(r"role|authorization|search_path|schema|catalog|database|warehouse|path")
_TIME_ZONE = "spark.sql.session.timeZone"
_IN_PARTS = re.compile(r"^`[^`]*`(\.`?[^`]*`?)+$")


def of_set(text: str, dialect: str, *, parsed: bool) -> Effect:
    """What `SET ...` does.

    Args:
        text: what follows the word SET, as the engine is given it.
        parsed: a tree stands for the statement, so that code in it is found elsewhere.
    """
    key, equals, value = (part.strip() for part in text.strip().partition("="))
    words = key.lower().split()
    if words and words[0] in ("variable", "var"):
        return _nothing() if parsed else _unknown(key)
    if not equals:
        return _without_value(words, key, dialect)
    plain = key.replace("`", "").replace('"', "")
    if not _KEY.match(plain):
        return _unknown(key)
    if dialect in SPARK:
        return _of_spark(plain, key, value)
    return _directs(plain.lower()) if _DOORS.search(text.lower()) else _nothing()


def _of_spark(key: str, written: str, value: str) -> Effect:
    meaning = meaning_of(key, value)
    if meaning in ("places", "unknown"):
        return _directs(key.lower())
    if _IN_PARTS.match(written):
        return _refused(key, written, value)
    if is_fixed(key):
        return Effect("fails", "SET", detail=f"Spark takes {key} only when it starts")
    if meaning != "values":
        return _nothing()
    spelling = spelling_of(key)
    if spelling is not None and spelling != key:
        return Effect(
            "sets",
            "SET",
            detail=f"{spelling}: written as {key}, which Spark does not know, so nothing is set",
        )
    return Effect("sets", "SET", detail=spelling or key)


def _refused(key: str, written: str, value: str) -> Effect:
    """SQLMesh puts each part of a key into quotes, and Spark's SET takes one pair at most."""
    spelling = spelling_of(key) or key
    if spelling == _TIME_ZONE:
        works = "write `SET TIME ZONE '...'`"
    elif spelling == spelling.lower() and re.fullmatch(r"\w+", value):
        works = f"write the whole key in one pair of backticks, SET `{key}` = {value}"
    else:
        works = ""
    works += f"{', or ' if works else ''}set it in the connection's `config` in config.yaml"
    return Effect(
        "fails",
        "SET",
        detail=f"SQLMesh makes of {spelling} the text SET {written} = ..., and Spark refuses that "
        f"(INVALID_SET_SYNTAX); {works}",
    )


def _without_value(words: list[str], key: str, dialect: str) -> Effect:
    if not words or words == ["-v"] or (len(words) == 1 and _KEY.match(words[0])):
        return _nothing()  # shows what is set
    if words[:2] == ["time", "zone"]:
        return (
            Effect("sets", "SET TIME ZONE", detail=_TIME_ZONE) if dialect in SPARK else _nothing()
        )
    if words[0] in ("catalog", "role"):
        return _directs(" ".join(words[:2]))
    return _unknown(key.lower())


def _directs(key: str) -> Effect:
    return Effect("directs", "SET", detail=key)


def _nothing() -> Effect:
    return Effect("nothing", "SET")


def _unknown(key: str) -> Effect:
    return unknown("SET", f"the setting {key[:80]}")
