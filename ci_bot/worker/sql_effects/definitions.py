"""CREATE, DROP and ALTER: which objects come, go or become others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ci_bot.worker.sql_effects import effects
from ci_bot.worker.sql_effects.effects import (
    SPARK,
    Action,
    ObjectName,
    SqlEffect,
    make_unknown_effect,
)

if TYPE_CHECKING:
    from sqlglot import exp

# What stands between CREATE and AS: clauses that say where a table's files are, and others.


# Clauses of CREATE that add nothing to what the statement's name says.
_PLAIN = frozenset(
    {
        "temporaryproperty", "globalproperty", "schemacommentproperty", "partitionedbyproperty",
        "clusteredbyproperty", "returnsproperty", "icebergproperty", "transientproperty",
        "materializedproperty", "clusterproperty", "cluster", "partitionbyrangeproperty",
        "partitionedbybucket", "withdataproperty", "likeproperty",
    }
)  # fmt: skip

_WORD = re.compile(r"^\w+$")

_KEY = re.compile(r"^[\w.\-:]+$")
# A property that leads a table's files, or the code that writes them, somewhere.
_LEADS = frozenset(
    {"path", "paths", "location", "dir", "uri", "url", "impl", "class", "provider", "external",
     "catalog", "warehouse", "serde", "committer"}
)  # fmt: skip
# Those of them that say where the files are.
_PLACES = frozenset({"path", "paths", "location", "dir", "uri", "url", "warehouse"})

SHARED_PLACE = (
    "names a place for the files, which all versions of the model, those of prod and of every "
    "environment, would share"
)
# SQLMesh's own name (Athena) for a directory in which it gives each physical table one of its own.
_BASES = frozenset({"s3_base_location"})


def find_odd_clause(tree: exp.Expr) -> str | None:
    """What the first clause of a CREATE does that leads its files elsewhere or is not known."""
    properties = tree.args.get("properties")
    for clause in properties.expressions if properties is not None else ():
        if clause.key in _PLAIN:
            continue
        if clause.key == "property":
            odd = find_odd_key(clause.this if isinstance(clause.this, str) else clause.this.name)
        elif clause.key == "fileformatproperty":
            odd = find_odd_format(clause.name)
        elif clause.key == "languageproperty":
            odd = None if clause.name.upper() == "SQL" else f"LANGUAGE {clause.name} is a program"
        elif clause.key == "locationproperty":
            odd = f"LOCATION {SHARED_PLACE}"
        else:
            odd = f"{clause.key.removesuffix('property').upper()} is not on the list"
        if odd is not None:
            return odd
    return None


def find_odd_format(name: str) -> str | None:
    """Why the name of a format is no plain word: SQLMesh puts it into its SQL as it is."""
    return None if _WORD.match(name) else f"the format {name[:80]!r} is no plain word"


def find_odd_key(key: str) -> str | None:
    """Why a table property is no plain one: it leads somewhere, or its name is no name.

    What says where files are is the same for each version of a model, which SQLMesh keeps apart by
    the names of tables alone: to build one writes over another.
    """
    if key.lower() in _BASES:
        return None
    if not _KEY.match(key):
        return f"the property {key[:80]!r} is no plain name"
    parts = set(re.split(r"[.\-_:]", key.lower()))
    if parts & _PLACES:
        return f"the property {key} {SHARED_PLACE}"
    return f"the property {key} leads elsewhere" if parts & _LEADS else None


_SCHEMAS = frozenset({"SCHEMA", "DATABASE", "NAMESPACE"})

_QUERIES = frozenset({"select", "union", "intersect", "except", "subquery", "values"})
# What ALTER TABLE may change of a table's form; a partition with a LOCATION is none of these.
_STRUCTURE = frozenset(
    {"columndef", "schema", "renamecolumn", "altercolumn", "drop", "addconstraint", "cluster",
     "addpartition", "droppartition"}
)  # fmt: skip


def list_create_effects(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    kind = str(tree.args.get("kind") or "").upper()
    if kind == "FUNCTION":
        yield _read_function(tree)
        return
    odd = find_odd_clause(tree)
    if odd is not None:
        yield make_unknown_effect(f"CREATE {kind}", odd)
    elif kind in ("TABLE", "VIEW") and _is_temporary(tree):
        yield _temporary_object(tree, kind, dialect)
    elif kind in ("TABLE", "VIEW"):
        action: Action = "replaces" if tree.args.get("replace") else "creates"
        yield SqlEffect(action, f"CREATE {kind}", effects.read_table_name(tree.this))
    elif kind in _SCHEMAS:
        yield SqlEffect(
            "creates", f"CREATE {kind}", effects.read_table_name(tree.this), schema=True
        )
    elif kind == "INDEX":
        yield SqlEffect(
            "describes", "CREATE INDEX", effects.read_table_name(tree.this.args.get("table"))
        )
    else:
        yield make_unknown_effect(f"CREATE {kind}", "this kind of object is not on the list")


def _is_temporary(tree: exp.Expr) -> bool:
    properties = tree.args.get("properties")
    return properties is not None and any(
        clause.key == "temporaryproperty" for clause in properties.expressions
    )


def _temporary_object(tree: exp.Expr, kind: str, dialect: str) -> SqlEffect:
    """A temporary view over files writes these files; one over a query cannot be written."""
    target = effects.read_table_name(tree.this)
    query = tree.args.get("expression")
    over_query = query is not None and query.key in _QUERIES
    if target is None or len(target) > 1 or (dialect in SPARK and not over_query):
        return make_unknown_effect(f"CREATE TEMPORARY {kind}", "not a query under a plain name")
    return SqlEffect("nothing", f"CREATE TEMPORARY {kind}", target)


def _read_function(tree: exp.Expr) -> SqlEffect:
    """A function in SQL is an expression; everything else is a program."""
    body = tree.args.get("expression")
    kind = "CREATE TEMPORARY FUNCTION" if _is_temporary(tree) else "CREATE FUNCTION"
    if body is None or body.key != "return" or find_odd_clause(tree) is not None:
        detail = body.name if body is not None and body.key == "literal" else ""
        return SqlEffect("code", kind, effects.read_table_name(tree.this), detail=detail)
    if _is_temporary(tree):
        return SqlEffect("nothing", kind)
    action: Action = "replaces" if tree.args.get("replace") else "creates"
    return SqlEffect(action, kind, effects.read_table_name(tree.this))


def list_drop_effects(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    kind = str(tree.args.get("kind") or "").upper()
    target = effects.read_table_name(tree.this)
    if tree.args.get("temporary"):
        yield SqlEffect("nothing", f"DROP TEMPORARY {kind}")
    elif kind in _SCHEMAS:
        yield SqlEffect("drops", f"DROP {kind}", target, schema=True)
    else:
        for more in (target, *(effects.read_table_name(one) for one in tree.expressions)):
            yield SqlEffect("drops", f"DROP {kind}".strip(), more)


def list_alter_effects(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    kind = f"ALTER {tree.args.get('kind') or ''}".strip()
    target = effects.read_table_name(tree.this)
    actions = tree.args.get("actions") or []
    if not actions:
        yield make_unknown_effect(kind, "what it alters is not on the list")
    for action in actions:
        yield from _list_action_effects(action, kind, target)


def _list_action_effects(
    action: exp.Expr, kind: str, target: ObjectName | None
) -> Iterator[SqlEffect]:
    if action.key == "alterset":
        yield _read_properties(action, kind, target)
    elif action.key == "alterrename":
        yield SqlEffect("drops", f"{kind} RENAME", target)
        yield SqlEffect(
            "creates", f"{kind} RENAME", _name_beside(target, effects.read_table_name(action.this))
        )
    elif action.key == "altercolumn" and set(action.args) <= {"this", "comment"}:
        yield SqlEffect("describes", f"{kind} COMMENT", target)
    elif action.key in _QUERIES:
        yield SqlEffect("replaces", kind, target)
    elif action.key in _STRUCTURE and not action.args.get("location"):
        yield SqlEffect("alters", kind, target)
    else:
        yield make_unknown_effect(kind, f"{action.key.upper()} is not on the list")


def _read_properties(action: exp.Expr, kind: str, target: ObjectName | None) -> SqlEffect:
    """SET TBLPROPERTIES; SET LOCATION, SERDE and FILEFORMAT are other arguments of the node."""
    others = {name for name, value in action.args.items() if value and name != "expressions"}
    lists = [item for item in action.expressions if item is not None]
    keys = [
        one.this.name
        for item in lists
        if item.key == "properties"
        for one in item.expressions
        if one.key == "property"
    ]
    if others or not keys or any(item.key != "properties" for item in lists):
        what = f"SET {', '.join(sorted(others)).upper() or 'something'}"
        return make_unknown_effect(
            kind, f"{what} {SHARED_PLACE}" if others == {"location"} else what
        )
    odd = next((why for key in keys if (why := find_odd_key(key))), None)
    if odd is not None:
        return make_unknown_effect(kind, odd)
    return SqlEffect("describes", f"{kind} SET TBLPROPERTIES", target)


def _name_beside(old: ObjectName | None, new: ObjectName | None) -> ObjectName | None:
    """A new name without a schema is in the old one's."""
    if old is None or new is None or len(new) > 1:
        return new
    return (*old[:-1], *new)
