"""The effect of one SQL statement: an action and its target."""

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
    "moves",  # files, to another directory: their other users do not find them any more
    "directs",  # changes the table or directory that names in later statements mean
    "sets",  # a setting of the session that changes the values of queries
    "fails",  # the engine refuses it, so nothing is built
    "code",  # loads or runs a program
    "unknown",  # cannot be parsed, or is not on the list of known statements
]

# Names of tables, views and schemas, each part in lower case; the catalog comes first.
ObjectName = tuple[str, ...]

_FULL = 3  # catalog, schema, object


def display_name(name: ObjectName) -> str:
    """Joins the parts of a name with dots, as people write it."""
    return ".".join(name)


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
        """The effect without its target: kind, and detail if there is one."""
        return f"{self.kind}: {self.detail[:300]}" if self.detail else self.kind


def make_unknown_effect(kind: str, why: str) -> SqlEffect:
    """Makes the effect of a statement that cannot be judged, with the reason."""
    return SqlEffect("unknown", kind, detail=why)


def find_no_owner(name: ObjectName) -> None:
    """Finds no owner: used if the models of objects are not known."""


@dataclass(frozen=True)
class OwnObjects:
    """The objects that a statement may change: the environment's own.

    Attributes:
        environment: its name, for messages.
        catalog: the catalog of a name that has none.
        schemas: (catalog, schema) of schemas that hold only this environment's views.
        objects: tables and views, with catalog and schema.
        described: objects and schemas for which a statement may change only statistics, comments,
            properties and rights.
        whose: finds the model that an object belongs to, if that is known; for messages.
    """

    environment: str
    catalog: str
    schemas: frozenset[ObjectName] = frozenset()
    objects: frozenset[ObjectName] = frozenset()
    described: frozenset[ObjectName] = frozenset()
    whose: Callable[[ObjectName], str | None] = find_no_owner

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
        """Lists the names by which a person may know an object: its own, and its model's."""
        if target is None:
            return {None}
        model = self.whose(self.complete_name(target)[:_FULL])
        return {self._shorten_name(target), model} - {None}

    def describe_target(self, target: ObjectName) -> str:
        """The name without the default catalog, and the model of the table if it is known."""
        name = self._shorten_name(target)
        model = self.whose(self.complete_name(target)[:_FULL])
        return f"`{name}` of {model}" if model and model != name else f"`{name}`"

    def _shorten_name(self, target: ObjectName) -> str:
        known = len(target) > _FULL - 1 and target[0] == self.catalog
        return display_name(target[1:] if known else target)


# Programs inside SQL: functions that call Java, and queries that start a process.


# Spark's built-in functions that call any static method of the JVM.
RUNS_JAVA = frozenset({"java_method", "reflect", "try_reflect"})


def list_code_effects(tree: exp.Expr) -> Iterator[SqlEffect]:
    """Yields the parts of a tree that run a program when the engine evaluates it."""
    for node in tree.walk():
        if node.key == "querytransform":
            yield SqlEffect("code", "TRANSFORM", detail=node.sql())
        elif node.key == "anonymous" and node.name.lower() in RUNS_JAVA:
            yield SqlEffect("code", node.name.lower(), detail=node.sql())


# Names of objects in a tree, in one form: lower case, no quotes, catalog first.


# A macro that means the model's own table, in each environment.
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


# Text that Spark reads in another way than sqlglot's parser.


# Spark replaces variables before it parses the text, also in literals and comments:
# org.apache.spark.internal.config.ConfigReader.
_VARIABLE = re.compile(r"\$\{(?:\w+?:)?\S+?\}")

SPARK = frozenset({"spark", "spark2", "databricks", "hive"})


def find_hidden_meaning(text: str, tokens: list[Token], dialect: str) -> str | None:
    """Why the engine may read `text` in another way than this parser; None if it cannot."""
    if dialect in SPARK and _VARIABLE.search(text):
        return "Spark replaces a variable, ${...}, in its text before it reads it"
    for token in tokens:
        if any("/*" in comment or "*/" in comment for comment in token.comments):
            return "a comment inside a comment, which engines read differently"
    return None
