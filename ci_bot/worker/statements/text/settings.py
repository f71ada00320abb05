"""SET: which settings of a session change nothing but how fast or how strictly Spark works."""

from __future__ import annotations

import re

from ci_bot.worker.statements.effects import Effect, unknown
from ci_bot.worker.statements.text.lexical import SPARK

_KEY = re.compile(r"^[\w.\-]+$")
# Groups below `spark.sql.` of which every key tunes or checks; keys that name a class, a path, a
# catalog or a committer are in none of them, or are taken out below.
_TUNING = (
    "adaptive", "analyzer", "ansi", "autobroadcastjointhreshold", "avro", "broadcasttimeout",
    "casesensitive", "cbo", "codegen", "crossjoin", "csv", "debug", "decimaloperations",
    "execution.arrow", "files", "inmemorycolumnarstorage", "join", "json", "legacy",
    "limit", "mapkeydeduppolicy", "maxplanstringlength", "objecthashaggregate", "optimizer", "orc",
    "parquet", "session.timezone", "shuffle", "statistics", "storeassignmentpolicy",
    "timestamptype", "window",
)  # fmt: skip
_OTHER = frozenset(
    {
        "hive.exec.dynamic.partition", "hive.exec.dynamic.partition.mode",
        "hive.exec.max.dynamic.partitions", "hive.exec.max.dynamic.partitions.pernode",
        "spark.scheduler.pool", "spark.job.description",
        "spark.databricks.delta.schema.automerge.enabled",
        "spark.databricks.delta.optimizewrite.enabled",
        "spark.databricks.delta.autocompact.enabled",
    }
)  # fmt: skip
_NEVER = re.compile(r"class|committer|path|dir\b|location|catalog|warehouse|extensions|provider")
# Elsewhere a session has few doors: who it is, and where its names lead.
_DOORS = re.compile(r"role|authorization|search_path|schema|catalog|database|warehouse|path")


def of_set(text: str, dialect: str, *, parsed: bool) -> Effect:
    """What `SET ...` does.

    Args:
        text: what follows the word SET.
        parsed: a tree stands for the statement, so that code in it is found elsewhere.
    """
    key, equals, value = text.strip().partition("=")
    key, value = key.strip().lower(), value.strip().strip("'\"`").lower()
    words = key.split()
    if words and words[0] in ("variable", "var"):
        return _nothing() if parsed else _unknown(key)
    if not equals:
        return _without_value(words, key)
    plain = key.replace("`", "").replace('"', "")
    if not _KEY.match(plain):
        return _unknown(key)
    if _harmless(plain, value) if dialect in SPARK else not _DOORS.search(text.lower()):
        return _nothing()
    return Effect("directs", "SET", detail=plain)


def _harmless(key: str, value: str) -> bool:
    if key == "spark.sql.sources.partitionoverwritemode":
        return value == "dynamic"  # static replaces whole tables instead of partitions
    if key in _OTHER:
        return True
    group = key.removeprefix("spark.sql.")
    known = group != key and any(group == name or group.startswith(f"{name}.") for name in _TUNING)
    return known and not _NEVER.search(group)


def _without_value(words: list[str], key: str) -> Effect:
    if not words or words == ["-v"] or (len(words) == 1 and _KEY.match(words[0])):
        return _nothing()  # shows what is set
    if words[:2] == ["time", "zone"]:
        return _nothing()
    if words[0] in ("catalog", "role"):
        return Effect("directs", "SET", detail=" ".join(words[:2]))
    return _unknown(key)


def _nothing() -> Effect:
    return Effect("nothing", "SET")


def _unknown(key: str) -> Effect:
    return unknown("SET", f"the setting {key[:80]}")
