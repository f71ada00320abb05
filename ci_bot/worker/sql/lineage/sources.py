"""What lineage is computed of: a project's models on both sides of a change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp

from ci_bot.protocol.review_report import HowChanged

# `added` and `removed` only if a model reads it that was not edited for that.
ModelChange = Literal["added", "removed", "direct", "indirect"]
# Tables by their name as `table_name` writes it, with their columns in order; None: not known.
KnownColumns = Mapping[str, tuple[str, ...] | None]


@dataclass(frozen=True)
class ModelDefinition:
    """The query of a model on one side.

    Attributes:
        rendered: the tree that SQLMesh would run, with the times of a load; None where `opaque`.
        written: the tree of the file, with macros; None if it is Jinja or a macro as a whole.
        incremental: the tree as a run renders it that finds what earlier runs left, if nothing else
            of times and conditions is hidden in Jinja (dbt's `is_incremental`).
        has_star: the file has a star, so the rendering shows only columns that still exist.
        hides: the rendering may have folded something away that depends on times or conditions.
        text: the file's text with its macros', for the names in it, where it hides and no other
            tree shows it, or a macro may bring other names when the model runs.
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
    """One model that a change touches, or that is below such a one.

    Attributes:
        parents: names of the tables that it depends on, as far as SQLMesh knows them.
        after: its definition in the head; asked for only if something above it changes.
        before: its definition in prod, for a model that was edited.
        columns_before, columns_after: names in lower case, in their order; None: not known.
        changed: columns that change in a way that the query does not show, and how.
        same_result: it is proved that both definitions give the same, but for the columns' order.
        executed: columns of which an execution has shown that they differ; None: how many rows.
        disproved: how an execution has shown that the analysis misses a change, as a sentence.
        beside_query: what besides the query decides about its data and differs, as a sentence.
        deciding: columns by which its kind decides which rows it keeps; None: by all of them.
        read_elsewhere: parents that something else than its query reads.
        is_source: it has no query: a seed or an external model.
        opaque: why nothing can be known of what it reads, as a sentence (Python models).
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
    """The models that the analysis looks at, every one after those that it reads.

    Attributes:
        models: changed models and everything below them, in topological order.
        columns: the columns of every table that one of them reads: of both sides together.
        shown: how people call a model.
    """

    models: tuple[LineageModel, ...]
    columns: KnownColumns = field(default_factory=dict)
    shown: Callable[[str], str] = str
