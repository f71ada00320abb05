"""What one SQL statement does to whom: the words that reading and judging share."""

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
    "nothing",  # reads, or touches the session alone: temporary views, caches, harmless settings
    "describes",  # statistics, comments, properties, indexes: no row and no column differs
    "grants",  # who may do what
    "writes",  # rows
    "creates",
    "replaces",
    "alters",
    "drops",
    "moves",  # files, away from where others find them
    "directs",  # where unqualified names or files of later statements go
    "sets",  # a setting of the session by which queries give other values
    "fails",  # the engine refuses it, so that nothing is built
    "code",  # loads or runs a program
    "unknown",  # cannot be read, or is not on the list of what can be judged
]

# Names of tables, views and schemas, each part in lower case; the catalog comes first.
ObjectName = tuple[str, ...]

_FULL = 3  # catalog, schema, object


def display_name(name: ObjectName) -> str:
    """A name as people write it."""
    return ".".join(name)


@dataclass(frozen=True)
class SqlEffect:
    """One thing that a statement does.

    Attributes:
        action: what sort of thing it is; it decides how it is judged.
        kind: the statement's name, as in `INSERT` or `CREATE VIEW`.
        target: the object that it does it to, with as many parts as the statement names; None if it
            has none, or if the name is known only when it runs.
        schema: the target is a schema, and not an object in one.
        detail: what a reader must know besides, as in a function's name.
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
    """A statement that nobody can vouch for."""
    return SqlEffect("unknown", kind, detail=why)


def find_no_owner(name: ObjectName) -> None:
    """For if no object is known to belong to a model."""


@dataclass(frozen=True)
class OwnObjects:
    """What a statement may change: the environment's own objects.

    Attributes:
        environment: its name, for messages.
        catalog: the catalog of names that do not say one.
        schemas: (catalog, schema) of schemas that hold only this environment's views.
        objects: tables and views, with catalog and schema.
        described: objects and schemas of which only statistics, comments, properties and rights may
            change.
        whose: the model that an object belongs to, if that is known; for messages.
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
        full = self.full_name(target)
        if target in self.objects:
            return True
        if len(full) < _FULL:
            return False  # the session's current schema is anything
        if only_described and full[:_FULL] in self.described:
            return True
        # A fourth part is a branch or a metadata table of the same table.
        return full[:_FULL] in self.objects or (len(full) == _FULL and full[:2] in self.schemas)

    def full_name(self, target: ObjectName) -> ObjectName:
        """A name with its catalog."""
        return (self.catalog, *target) if len(target) == _FULL - 1 else target

    def names_of_target(self, target: ObjectName | None) -> set[str | None]:
        """The names that a person may know an object by: its own, and its model's."""
        if target is None:
            return {None}
        model = self.whose(self.full_name(target)[:_FULL])
        return {self._plain_name(target), model} - {None}

    def describe_target(self, target: ObjectName) -> str:
        """A name without the default catalog, and whose table it is if that is known."""
        name = self._plain_name(target)
        model = self.whose(self.full_name(target)[:_FULL])
        return f"`{name}` of {model}" if model and model != name else f"`{name}`"

    def _plain_name(self, target: ObjectName) -> str:
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


# A macro that stands for the model's own table, wherever it runs.
THIS_MODEL: ObjectName = ("@this_model",)


def read_table_name(node: exp.Expr | None) -> ObjectName | None:
    """The name in a table's node; None if a part is computed when the statement runs."""
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
    return _name_from_parts(parts)


def _name_from_parts(parts: list[exp.Expr]) -> ObjectName | None:
    found = []
    for part in parts:
        if part.key != "identifier" or "@" in part.this:
            return None
        found.append(part.this.lower())
    return tuple(found) or None


# What a statement's text can hide from a parser that is not Spark's own.


# Spark puts a variable's value into the text before it reads it, inside literals and comments too:
# org.apache.spark.internal.config.ConfigReader.
_VARIABLE = re.compile(r"\$\{(?:\w+?:)?\S+?\}")

SPARK = frozenset({"spark", "spark2", "databricks", "hive"})


def find_hidden_meaning(text: str, tokens: list[Token], dialect: str) -> str | None:
    """Why `text` may mean something else to the engine than to us; None if it cannot."""
    if dialect in SPARK and _VARIABLE.search(text):
        return "Spark replaces a variable, ${...}, in its text before it reads it"
    for token in tokens:
        if any("/*" in comment or "*/" in comment for comment in token.comments):
            return "a comment inside a comment, which engines read differently"
    return None
