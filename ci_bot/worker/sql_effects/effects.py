"""The effect of one SQL statement: an action and its target.

For CREATE, DROP and ALTER also the objects that they create, remove or change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.tokens import Token

NOT_PARSED = "it cannot be parsed"
NOT_LISTED = "this kind of statement is not on the list"

Action = Literal[
    "nothing",  # reads, or changes only the session: temporary views, caches, harmless settings
    "describes",  # statistics, comments, properties, indexes: rows and columns stay the same
    "grants",  # who may do what
    "writes",  # rows
    "creates",
    "replaces",
    "alters",
    "drops",
    "moves",  # files, to another directory: their other users no longer find them
    "directs",  # changes the table or directory that names in later statements mean
    "sets",  # a setting of the session that changes the values of queries
    "fails",  # the engine refuses it, so nothing is built
    "code",  # loads or runs a program
    "unknown",  # cannot be parsed, or is not on the list of known statements
]

# Names of tables, views and schemas, each part in lower case; the catalog comes first.
ObjectName = tuple[str, ...]

_FULL = 3  # catalog, schema, object


@dataclass(frozen=True)
class SqlEffect:
    """One effect of a statement.

    Attributes:
        action: the kind of effect, which decides its severity.
        kind: the statement's name, such as `INSERT` or `CREATE VIEW`.
        target: the name of the changed object, with as many parts as the statement writes; None if
            there is no object, or if its name is known only when the statement runs.
        schema: the target is a schema, and not an object in one.
        detail: more that a reader must know, such as a function's name.
    """

    action: Action
    kind: str
    target: ObjectName | None = None
    schema: bool = False
    detail: str = ""

    @property
    def described_effect(self) -> str:
        """The effect without its target: its kind, and its detail if there is one."""
        return f"{self.kind}: {self.detail[:300]}" if self.detail else self.kind


def make_unknown_effect(kind: str, why: str) -> SqlEffect:
    """Makes the effect of a statement that cannot be judged, with the reason."""
    return SqlEffect("unknown", kind, detail=why)


@dataclass(frozen=True)
class OwnObjects:
    """The objects that a statement may change: the environment's own.

    Attributes:
        environment: its name, for messages.
        catalog: the catalog of a name without one.
        schemas: (catalog, schema) of schemas that hold only this environment's views.
        objects: tables and views, with catalog and schema.
        described: objects and schemas for which a statement may change only statistics, comments,
            properties and rights.
        whose: returns the model that an object belongs to, for messages; None if it is unknown.
    """

    environment: str
    catalog: str
    schemas: frozenset[ObjectName] = frozenset()
    objects: frozenset[ObjectName] = frozenset()
    described: frozenset[ObjectName] = frozenset()
    whose: Callable[[ObjectName], str | None] = lambda name: None

    def is_own_target(self, effect: SqlEffect) -> bool:
        """Whether the target of `effect` is the environment's own."""
        target = effect.target
        if target is None:
            return False
        only_described = effect.action in ("describes", "grants")
        if effect.schema:
            full = target if len(target) > 1 else (self.catalog, *target)
            return full in self.schemas or (only_described and full in self.described)
        full = self.complete_name(target)
        if target in self.objects:
            return True
        if len(full) < _FULL:
            return False  # any schema can be the session's current one
        if only_described and full[:_FULL] in self.described:
            return True
        # A fourth part is a branch or a metadata table of the same table.
        return full[:_FULL] in self.objects or (len(full) == _FULL and full[:2] in self.schemas)

    def complete_name(self, target: ObjectName) -> ObjectName:
        """Adds the catalog to a name that has none."""
        return (self.catalog, *target) if len(target) == _FULL - 1 else target

    def list_target_names(self, target: ObjectName | None) -> set[str | None]:
        """Lists the names that people may use for an object: its own, and its model's.

        Without a target the only name is None.
        """
        if target is None:
            return {None}
        model = self.whose(self.complete_name(target)[:_FULL])
        return {self._shorten_name(target), model} - {None}

    def describe_target(self, target: ObjectName) -> str:
        """Describes a target: its name without the default catalog, and its model if known."""
        name = self._shorten_name(target)
        model = self.whose(self.complete_name(target)[:_FULL])
        return f"`{name}` of {model}" if model and model != name else f"`{name}`"

    def _shorten_name(self, target: ObjectName) -> str:
        known = len(target) > _FULL - 1 and target[0] == self.catalog
        return ".".join(target[1:] if known else target)


# Programs inside SQL: functions that call Java, and queries that start a process.


# These built-in functions of Spark call any static method of the JVM.
RUNS_JAVA = frozenset({"java_method", "reflect", "try_reflect"})


def list_code_effects(tree: exp.Expr) -> Iterator[SqlEffect]:
    """Yields the parts of a tree that run a program when the engine evaluates it."""
    for node in tree.walk():
        if node.key == "querytransform":
            yield SqlEffect("code", "TRANSFORM", detail=node.sql())
        elif node.key == "anonymous" and node.name.lower() in RUNS_JAVA:
            yield SqlEffect("code", node.name.lower(), detail=node.sql())


# The names of objects in a tree have one form: lower case, no quotes, catalog first.


# The macro that means the model's own table, in each environment.
THIS_MODEL: ObjectName = ("@this_model",)


def read_table_name(node: exp.Expr | None) -> ObjectName | None:
    """Reads the name in a table's node; None if a part is computed when the statement runs."""
    if node is None:
        return None
    if node.key in ("schema", "userdefinedfunction"):  # with a list of columns or arguments
        return read_table_name(node.this)
    parts: list[exp.Expr]
    if node.key in ("table", "column"):
        parts = [*cast("exp.Column | exp.Table", node).parts]
    elif node.key in ("identifier", "macrovar"):
        parts = [node]
    else:
        return None
    alone = parts[0] if len(parts) == 1 else None
    if alone is not None and alone.key == "macrovar" and alone.name.lower() == "this_model":
        return THIS_MODEL
    return _join_name_parts(parts)


def _join_name_parts(parts: list[exp.Expr]) -> ObjectName | None:
    found = []
    for part in parts:
        if part.key != "identifier" or "@" in part.this:
            return None
        found.append(part.this.lower())
    return tuple(found) or None


# Texts that Spark reads in another way than sqlglot's parser.


# Spark replaces variables before it parses the text, also in literals and comments:
# org.apache.spark.internal.config.ConfigReader.
_VARIABLE = re.compile(r"\$\{(?:\w+?:)?\S+?\}")
SPARK = frozenset({"spark", "spark2", "databricks", "hive"})


def find_hidden_meaning(text: str, tokens: list[Token], dialect: str) -> str | None:
    """Explains why the engine may read `text` differently than this parser; None if it cannot."""
    if dialect in SPARK and _VARIABLE.search(text):
        return "Spark replaces a variable, ${...}, in its text before it reads it"
    for token in tokens:
        if any("/*" in comment or "*/" in comment for comment in token.comments):
            return "a comment inside a comment, which engines read differently"
    return None


# Harmless clauses between CREATE and AS: they do not place files or data elsewhere.
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
    """Explains why a clause of a CREATE is unsafe: it places the files elsewhere, or it is unknown.

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
    """Explains why a format's name is unsafe; None if it is safe.

    SQLMesh does not quote the name, so it must be one word.
    """
    return None if _WORD.match(name) else f"the format {name[:80]!r} is no plain word"


def find_unsafe_property(key: str) -> str | None:
    """Explains why a table property is unsafe; None if it is safe.

    It is unsafe if it leads to another place, or if its name could be more than a name. A property
    that sets the directory has one value for all versions of a model. SQLMesh separates versions
    only by the names of their tables, so a build of one version would overwrite another.
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
    elif kind in ("TABLE", "VIEW") and _makes_temporary_object(tree):
        yield _read_temporary_object(tree, kind, dialect)
    elif kind in ("TABLE", "VIEW"):
        action: Action = "replaces" if tree.args.get("replace") else "creates"
        yield SqlEffect(action, f"CREATE {kind}", read_table_name(tree.this))
    elif kind in _SCHEMAS:
        yield SqlEffect("creates", f"CREATE {kind}", read_table_name(tree.this), schema=True)
    elif kind == "INDEX":
        yield SqlEffect("describes", "CREATE INDEX", read_table_name(tree.this.args.get("table")))
    else:
        yield make_unknown_effect(f"CREATE {kind}", "this kind of object is not on the list")


def _makes_temporary_object(tree: exp.Expr) -> bool:
    properties = tree.args.get("properties")
    return properties is not None and any(
        clause.key == "temporaryproperty" for clause in properties.expressions
    )


def _read_temporary_object(tree: exp.Expr, kind: str, dialect: str) -> SqlEffect:
    """Reads the effect of a temporary object; one over a query is read-only.

    INSERT into a temporary view over files writes the files.
    """
    target = read_table_name(tree.this)
    query = tree.args.get("expression")
    over_query = query is not None and query.key in _QUERIES
    if target is None or len(target) > 1 or (dialect in SPARK and not over_query):
        return make_unknown_effect(f"CREATE TEMPORARY {kind}", "not a query under a plain name")
    return SqlEffect("nothing", f"CREATE TEMPORARY {kind}", target)


def _read_function_definition(tree: exp.Expr) -> SqlEffect:
    """Reads CREATE FUNCTION: with a body in SQL it is an expression, otherwise a program."""
    body = tree.args.get("expression")
    kind = "CREATE TEMPORARY FUNCTION" if _makes_temporary_object(tree) else "CREATE FUNCTION"
    if body is None or body.key != "return" or find_unsafe_clause(tree) is not None:
        detail = body.name if body is not None and body.key == "literal" else ""
        return SqlEffect("code", kind, read_table_name(tree.this), detail=detail)
    if _makes_temporary_object(tree):
        return SqlEffect("nothing", kind)
    action: Action = "replaces" if tree.args.get("replace") else "creates"
    return SqlEffect(action, kind, read_table_name(tree.this))


def list_drop_effects(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    kind = str(tree.args.get("kind") or "").upper()
    target = read_table_name(tree.this)
    if tree.args.get("temporary"):
        yield SqlEffect("nothing", f"DROP TEMPORARY {kind}")
    elif kind in _SCHEMAS:
        yield SqlEffect("drops", f"DROP {kind}", target, schema=True)
    else:
        for more in (target, *(read_table_name(one) for one in tree.expressions)):
            yield SqlEffect("drops", f"DROP {kind}".strip(), more)


def list_alter_effects(tree: exp.Expr, dialect: str) -> Iterator[SqlEffect]:
    kind = f"ALTER {tree.args.get('kind') or ''}".strip()
    target = read_table_name(tree.this)
    actions = tree.args.get("actions") or []
    if not actions:
        yield make_unknown_effect(kind, "what it alters is not on the list")
    for action in actions:
        yield from _list_action_effects(action, kind, target)


def _list_action_effects(
    action: exp.Expr, kind: str, target: ObjectName | None
) -> Iterator[SqlEffect]:
    if action.key == "alterset":
        yield _read_property_change_effect(action, kind, target)
    elif action.key == "alterrename":
        yield SqlEffect("drops", f"{kind} RENAME", target)
        yield SqlEffect(
            "creates",
            f"{kind} RENAME",
            _complete_new_name(target, read_table_name(action.this)),
        )
    elif action.key == "altercolumn" and set(action.args) <= {"this", "comment"}:
        yield SqlEffect("describes", f"{kind} COMMENT", target)
    elif action.key in _QUERIES:
        yield SqlEffect("replaces", kind, target)
    elif action.key in _STRUCTURE and not action.args.get("location"):
        yield SqlEffect("alters", kind, target)
    else:
        yield make_unknown_effect(kind, f"{action.key.upper()} is not on the list")


def _read_property_change_effect(
    action: exp.Expr, kind: str, target: ObjectName | None
) -> SqlEffect:
    """Reads the effect of SET TBLPROPERTIES.

    LOCATION, SERDE and FILEFORMAT are other arguments of the node.
    """
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
