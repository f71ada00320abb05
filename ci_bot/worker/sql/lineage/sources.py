"""The input of lineage: a project's models on both sides of a change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp

from ci_bot.protocol.review_report import HowChanged

# `added` and `removed` are used only if an unedited model reads the model.
ModelChange = Literal["added", "removed", "direct", "indirect"]
# Columns in order by their table's name as `table_name` writes it; None if they are not known.
KnownColumns = Mapping[str, tuple[str, ...] | None]


@dataclass(frozen=True)
class ModelDefinition:
    """The query of a model on one side.

    Attributes:
        rendered: the tree that SQLMesh would run, with the times of a load; None if there is an
            `opaque` reason.
        written: the tree of the file, with macros; None if it is Jinja or a macro as a whole.
        incremental: the tree as it is rendered by a run that finds the results of earlier runs, if
            Jinja hides nothing else that depends on times and conditions (dbt's `is_incremental`).
        has_star: the file has a star, so the rendering shows only columns that still exist.
        hides: the rendering may have removed a part that depends on times or conditions.
        text: the text of the file and its macros, for the names in it. It is needed if the
            rendering hides a part that no other tree shows, or if a macro may add names when the
            model runs.
        opaque: why the query cannot be read, as a sentence.
    """

    rendered: exp.Query | None = None
    written: exp.Expr | None = None
    incremental: exp.Query | None = None
    has_star: bool = False
    hides: bool = False
    text: str | None = None
    opaque: str | None = None


@dataclass(frozen=True)
class LineageModel:
    """One model that a change touches, or that is below such a model.

    Attributes:
        parents: names of the tables that it depends on, as SQLMesh knows them.
        after: makes its definition in the head; called only if something above it changes.
        before: makes its definition in prod, for an edited model.
        columns_before, columns_after: names in lower case, in their order; None if not known.
        changed: columns that change in a way that the query does not show, and how.
        same_result: it is proved that both definitions give the same, except for the order of
            columns.
        executed: columns that an execution has shown to differ; None in it means the number of
            rows.
        disproved: how an execution has shown that the analysis misses a change, as a sentence.
        beside_query: a difference outside of the query that decides about its data, as a sentence.
        deciding: columns by which its kind decides which rows it keeps; None: by all of them.
        read_elsewhere: parents that another part than its query reads.
        is_source: it has no query: a seed or an external model.
        opaque: why nothing can be known about what it reads, as a sentence (Python models).
    """

    name: str
    parents: tuple[str, ...] = ()
    change: ModelChange | None = None
    after: Callable[[], ModelDefinition] | None = None
    before: Callable[[], ModelDefinition] | None = None
    columns_before: tuple[str, ...] | None = None
    columns_after: tuple[str, ...] | None = None
    changed: Mapping[str, HowChanged] = field(default_factory=dict)
    same_result: bool = False
    executed: frozenset[str | None] = frozenset()
    disproved: str | None = None
    beside_query: str | None = None
    deciding: frozenset[str] | None = frozenset()
    read_elsewhere: frozenset[str] = frozenset()
    is_source: bool = False
    opaque: str | None = None


@dataclass(frozen=True)
class ChangedProject:
    """The models of the analysis; each comes after those that it reads.

    Attributes:
        models: changed models and everything below them, in topological order.
        columns: the columns of every table that one of them reads, of both sides together.
        shown: returns the name of a model for people.
    """

    models: tuple[LineageModel, ...]
    columns: KnownColumns = field(default_factory=dict)
    shown: Callable[[str], str] = str
