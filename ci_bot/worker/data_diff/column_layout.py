"""The columns of a comparison: pairs of both sides; added, removed and retyped ones; the keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from ci_bot.protocol.apply_report import SchemaDifference
from ci_bot.worker.data_diff.spec import SparkType, parse_spark_type
from ci_bot.worker.data_diff.value_comparison import align_types, is_usable_as_key

Columns = Sequence[tuple[str, str]]

Value = TypeVar("Value")

_NO_KEY = "The model has no grain and no unique key of columns, so its rows cannot be paired."


@dataclass(frozen=True)
class ColumnPair:
    """A column of both sides. `kind` is the type for comparing it, None if it cannot be
    compared.
    """

    prod: str
    pr: str
    prod_type: SparkType
    pr_type: SparkType
    kind: SparkType | None

    @property
    def shown_name(self) -> str:
        """The name that the report shows: the PR's, because that is what is under review."""
        return self.pr


@dataclass(frozen=True)
class ColumnLayout:
    """The columns of a comparison, or a sentence on why there can be none."""

    columns: list[ColumnPair] = field(default_factory=list)
    keys: list[ColumnPair] = field(default_factory=list)
    schema: SchemaDifference = field(default_factory=SchemaDifference)
    impossible: str | None = None

    @property
    def value_columns(self) -> list[ColumnPair]:
        """The columns outside the key, in prod's order."""
        return [column for column in self.columns if column not in self.keys]

    @property
    def unknown_columns(self) -> list[ColumnPair]:
        """Columns that have one type on both sides, but a type that Spark cannot compare."""
        return [c for c in self.value_columns if c.kind is None and c.prod_type == c.pr_type]

    def find_column(self, name: str) -> ColumnPair | None:
        """Finds the pair of a model's column name; None if there is none."""
        return _pick_by_name(name, {column.pr: column for column in self.columns})


def lay_out_columns(
    prod: Columns, pr: Columns, keys: Sequence[str], skip: Iterable[str] = ()
) -> ColumnLayout:
    """Pairs the columns of both sides and finds the keys among them."""
    pairs, schema = _pair_columns(prod, pr)
    layout = ColumnLayout(pairs, [], schema)
    if not keys:
        return ColumnLayout(pairs, [], schema, _NO_KEY)
    chosen: dict[ColumnPair, None] = {}
    for key in keys:
        found = layout.find_column(key)
        if found is None:
            held = (
                _pick_by_name(key, dict(prod)) is not None,
                _pick_by_name(key, dict(pr)) is not None,
            )
            return ColumnLayout(pairs, [], schema, _describe_missing_key(key, *held))
        if found.kind is None or not is_usable_as_key(found.kind):
            return ColumnLayout(pairs, [], schema, _describe_bad_key(found))
        chosen[found] = None
    skipped = {column for name in skip if (column := layout.find_column(name))}
    kept = [column for column in pairs if column in chosen or column not in skipped]
    return ColumnLayout(kept, list(chosen), schema)


def _pair_columns(prod: Columns, pr: Columns) -> tuple[list[ColumnPair], SchemaDifference]:
    theirs = dict(pr)
    taken: dict[str, str] = {}
    for name, _ in prod:
        found = _pick_by_name(
            name, {other: other for other in theirs if other not in taken.values()}
        )
        if found is not None:
            taken[name] = found
    pairs = []
    for name, ddl in prod:
        if name in taken:
            old, new = parse_spark_type(ddl), parse_spark_type(theirs[taken[name]])
            pairs.append(ColumnPair(name, taken[name], old, new, align_types(old, new)))
    return pairs, SchemaDifference(
        added=[name for name, _ in pr if name not in taken.values()],
        removed=[name for name, _ in prod if name not in taken],
        changed=[column.shown_name for column in pairs if column.prod_type != column.pr_type],
    )


def _pick_by_name(name: str, named: dict[str, Value]) -> Value | None:
    """Returns the entry of that name, else the only one that differs from it in case alone.

    Spark ignores the case of names unless `spark.sql.caseSensitive` is set.
    """
    if name in named:
        return named[name]
    alike = [value for other, value in named.items() if other.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None


def _describe_missing_key(key: str, in_prod: bool, in_pr: bool) -> str:
    if in_prod:
        return f"The key column {key} is not in the PR environment's table."
    if in_pr:
        return f"The key column {key} is not in prod's table."
    return f"The key column {key} is in neither table."


def _describe_bad_key(key: ColumnPair) -> str:
    if key.prod_type != key.pr_type:
        change = f"{key.prod_type.ddl_text} to {key.pr_type.ddl_text}"
        return f"The key column {key.shown_name} changed its type from {change}."
    return f"Spark cannot join on the key column {key.shown_name}, a {key.prod_type.ddl_text}."
