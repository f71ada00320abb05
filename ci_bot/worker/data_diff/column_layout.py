"""Which columns take part: pairs of both sides, what was added, removed and retyped, the keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlglot import exp

from ci_bot.protocol.apply_report import SchemaDifference
from ci_bot.worker.data_diff.spec import SparkType, parse
from ci_bot.worker.data_diff.value_comparison import align, usable_as_key

Columns = Sequence[tuple[str, str]]

Value = TypeVar("Value")

_NO_KEY = "The model has no grain and no unique key of columns, so its rows cannot be paired."


@dataclass(frozen=True)
class Column:
    """A column of both sides. `kind` is the type it is compared in, None if it cannot be."""

    prod: str
    pr: str
    prod_type: SparkType
    pr_type: SparkType
    kind: SparkType | None

    @property
    def name(self) -> str:
        """The name that the report shows: the PR's, because that is what is under review."""
        return self.pr


@dataclass(frozen=True)
class Layout:
    """The columns of a comparison, or the sentence that says why there can be none."""

    columns: list[Column] = field(default_factory=list)
    keys: list[Column] = field(default_factory=list)
    schema: SchemaDifference = field(default_factory=SchemaDifference)
    impossible: str | None = None

    @property
    def values(self) -> list[Column]:
        """The columns outside the key, in prod's order."""
        return [column for column in self.columns if column not in self.keys]

    @property
    def unknown(self) -> list[Column]:
        """Columns that have one type on both sides, but a type that Spark cannot compare."""
        return [c for c in self.values if c.kind is None and c.prod_type == c.pr_type]

    def named(self, name: str) -> Column | None:
        """The pair that a column name of the model means."""
        return _pick(name, {column.pr: column for column in self.columns})


def lay_out(prod: Columns, pr: Columns, keys: Sequence[str], skip: Iterable[str] = ()) -> Layout:
    """Pairs the columns of both sides and finds the keys among them."""
    pairs, schema = _paired(prod, pr)
    layout = Layout(pairs, [], schema)
    if not keys:
        return Layout(pairs, [], schema, _NO_KEY)
    chosen: dict[Column, None] = {}
    for key in keys:
        found = layout.named(key)
        if found is None:
            held = _pick(key, dict(prod)) is not None, _pick(key, dict(pr)) is not None
            return Layout(pairs, [], schema, _no_key(key, *held))
        if found.kind is None or not usable_as_key(found.kind):
            return Layout(pairs, [], schema, _bad_key(found))
        chosen[found] = None
    skipped = {column for name in skip if (column := layout.named(name))}
    kept = [column for column in pairs if column in chosen or column not in skipped]
    return Layout(kept, list(chosen), schema)


def _paired(prod: Columns, pr: Columns) -> tuple[list[Column], SchemaDifference]:
    theirs = dict(pr)
    taken: dict[str, str] = {}
    for name, _ in prod:
        found = _pick(name, {other: other for other in theirs if other not in taken.values()})
        if found is not None:
            taken[name] = found
    pairs = []
    for name, ddl in prod:
        if name in taken:
            old, new = parse(ddl), parse(theirs[taken[name]])
            pairs.append(Column(name, taken[name], old, new, align(old, new)))
    return pairs, SchemaDifference(
        added=[name for name, _ in pr if name not in taken.values()],
        removed=[name for name, _ in prod if name not in taken],
        changed=[column.name for column in pairs if column.prod_type != column.pr_type],
    )


def _pick(name: str, named: dict[str, Value]) -> Value | None:
    """The entry of that name, or else the only one that differs from it in case alone.

    Spark does not tell the case of names apart unless `spark.sql.caseSensitive` is set.
    """
    if name in named:
        return named[name]
    alike = [value for other, value in named.items() if other.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None


def _no_key(key: str, in_prod: bool, in_pr: bool) -> str:
    if in_prod:
        return f"The key column {key} is not in the PR environment's table."
    if in_pr:
        return f"The key column {key} is not in prod's table."
    return f"The key column {key} is in neither table."


def _bad_key(key: Column) -> str:
    if key.prod_type != key.pr_type:
        change = f"{key.prod_type.ddl} to {key.pr_type.ddl}"
        return f"The key column {key.name} changed its type from {change}."
    return f"Spark cannot join on the key column {key.name}, a {key.prod_type.ddl}."


# The key of a model, from its grain, or else from its kind.


def grain_columns(grains: Sequence[Any]) -> tuple[str, ...]:
    """The unquoted columns of a model's grain (`model.grains`); empty where it has none.

    Several grains are several keys, each unique by itself, so the first is enough. SQLMesh's own
    `model.on` joins on all of them together, and on the model's references too; then a row whose
    reference changed counts as gone and new instead of as changed.
    """
    if not grains:
        return ()
    grain = grains[0]
    if isinstance(grain, exp.Alias):
        grain = grain.this
    grain = grain.unnest()
    parts = grain.expressions if isinstance(grain, (exp.Tuple, exp.Array)) else [grain]
    return tuple((part.this.name if isinstance(part, exp.Alias) else part.name) for part in parts)


def key_columns(model: Any) -> tuple[str, ...]:
    """The unquoted columns that tell a model's rows apart; empty where it names none.

    Without a grain these are the columns that SQLMesh itself keeps rows apart by: the unique key,
    and with it the start of validity where each key has a row for every version. A key with an
    expression is no list of columns, so nothing is paired by it. (`ModelMeta.unique_key`, which
    dbt's `unique_key` becomes, too)
    """
    if grain := grain_columns(model.grains):
        return grain
    unique = list(model.unique_key)
    if unique and model.kind.is_scd_type_2:
        unique.append(model.kind.valid_from_name)
    if not all(isinstance(part, (exp.Column, exp.Identifier)) for part in unique):
        return ()
    return tuple(part.name for part in unique)
