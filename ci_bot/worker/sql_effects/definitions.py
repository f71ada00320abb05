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

# Clauses between CREATE and AS that are harmless: they lead nothing elsewhere.
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
# Words in the name of a property that decides where a table's files are, or which code writes them.
_LEADS = frozenset(
    {"path", "paths", "location", "dir", "uri", "url", "impl", "class", "provider", "external",
     "catalog", "warehouse", "serde", "committer"}
)  # fmt: skip
# The words among them that set the directory of the files.
_PLACES = frozenset({"path", "paths", "location", "dir", "uri", "url", "warehouse"})

SHARED_PLACE = (
    "names a place for the files, which all versions of the model, those of prod and of every "
    "environment, would share"
)
# SQLMesh's own property for Athena: in this directory each physical table gets one of its own.
_BASES = frozenset({"s3_base_location"})


def find_unsafe_clause(tree: exp.Expr) -> str | None:
    """Why a clause of a CREATE is unsafe: it leads the files elsewhere, or it is unknown.

    The first such clause counts; None if there is none.
    """
    properties = tree.args.get("properties")
    for clause in properties.expressions if properties is not None else ():
        if clause.key in _PLAIN:
            continue
        if clause.key == "property":
            odd = find_unsafe_property(
                clause.this if isinstance(clause.this, str) else clause.this.name
            )
        elif clause.key == "fileformatproperty":
            odd = find_unsafe_format(clause.name)
        elif clause.key == "languageproperty":
            odd = None if clause.name.upper() == "SQL" else f"LANGUAGE {clause.name} is a program"
        elif clause.key == "locationproperty":
            odd = f"LOCATION {SHARED_PLACE}"
        else:
            odd = f"{clause.key.removesuffix('property').upper()} is not on the list"
        if odd is not None:
            return odd
    return None


def find_unsafe_format(name: str) -> str | None:
    """Why a format's name is unsafe: SQLMesh does not quote it, so it must be one word."""
    return None if _WORD.match(name) else f"the format {name[:80]!r} is no plain word"


def find_unsafe_property(key: str) -> str | None:
    """Why a table property is unsafe: it leads elsewhere, or its name could be more than a name.

    A property that sets the directory has one value for all versions of a model. SQLMesh separates
    versions only by the names of their tables, so a build of one version would overwrite another.
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
# Changes of ALTER TABLE to a table's structure. A partition with a LOCATION does not count.
_STRUCTURE = frozenset(
    {"columndef", "schema", "renamecolumn", "altercolumn", "drop", "addconstraint", "cluster",
     "addpartition", "droppartition"}
)  # fmt: skip


def list_create_effects(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    kind = str(tree.args.get("kind") or "").upper()
    if kind == "FUNCTION":
        yield _read_function_definition(tree)
        return
    odd = find_unsafe_clause(tree)
    if odd is not None:
        yield make_unknown_effect(f"CREATE {kind}", odd)
    elif kind in ("TABLE", "VIEW") and _is_temporary(tree):
        yield _read_temporary_object(tree, kind, dialect)
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


def _read_temporary_object(tree: exp.Expr, kind: str, dialect: str) -> SqlEffect:
    """INSERT into a temporary view over files writes the files; one over a query is read-only."""
    target = effects.read_table_name(tree.this)
    query = tree.args.get("expression")
    over_query = query is not None and query.key in _QUERIES
    if target is None or len(target) > 1 or (dialect in SPARK and not over_query):
        return make_unknown_effect(f"CREATE TEMPORARY {kind}", "not a query under a plain name")
    return SqlEffect("nothing", f"CREATE TEMPORARY {kind}", target)


def _read_function_definition(tree: exp.Expr) -> SqlEffect:
    """A function whose body is SQL is an expression; every other one is a program."""
    body = tree.args.get("expression")
    kind = "CREATE TEMPORARY FUNCTION" if _is_temporary(tree) else "CREATE FUNCTION"
    if body is None or body.key != "return" or find_unsafe_clause(tree) is not None:
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
        yield _read_property_change(action, kind, target)
    elif action.key == "alterrename":
        yield SqlEffect("drops", f"{kind} RENAME", target)
        yield SqlEffect(
            "creates",
            f"{kind} RENAME",
            _complete_new_name(target, effects.read_table_name(action.this)),
        )
    elif action.key == "altercolumn" and set(action.args) <= {"this", "comment"}:
        yield SqlEffect("describes", f"{kind} COMMENT", target)
    elif action.key in _QUERIES:
        yield SqlEffect("replaces", kind, target)
    elif action.key in _STRUCTURE and not action.args.get("location"):
        yield SqlEffect("alters", kind, target)
    else:
        yield make_unknown_effect(kind, f"{action.key.upper()} is not on the list")


def _read_property_change(action: exp.Expr, kind: str, target: ObjectName | None) -> SqlEffect:
    """Reads SET TBLPROPERTIES. LOCATION, SERDE and FILEFORMAT are other arguments of the node."""
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
    odd = next((why for key in keys if (why := find_unsafe_property(key))), None)
    if odd is not None:
        return make_unknown_effect(kind, odd)
    return SqlEffect("describes", f"{kind} SET TBLPROPERTIES", target)


def _complete_new_name(old: ObjectName | None, new: ObjectName | None) -> ObjectName | None:
    """Completes the new name of a RENAME: without a schema it is in the schema of the old name."""
    if old is None or new is None or len(new) > 1:
        return new
    return (*old[:-1], *new)
