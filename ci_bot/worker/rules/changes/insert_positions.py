"""INSERT statements without a list of columns, after columns moved to other positions.

Without such a list and without BY NAME, Spark writes the first value into the first column of the
target, and so on. So an unchanged statement has another effect if columns of its target move, or of
a table whose columns it takes by a star.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlmesh.core import dialect as d

from ci_bot.protocol.rules import find_rule
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.rules.registry import on_project
from ci_bot.worker.sql import list_known_types, plain_name, table_name
from ci_bot.worker.sqlmesh_compat import FROM

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

BY_POSITION = find_rule("insert-by-position")

_OF_OWN = frozenset({"this_model"})
ColumnNames = tuple[str, ...]


@dataclass(frozen=True)
class _MovedColumns:
    """The columns of a table, in their order, before and after the change."""

    name: str
    before: ColumnNames
    after: ColumnNames

    @property
    def move_description(self) -> str:
        """Describes the moved positions; empty if each column is at its old position.

        A column that only got another name receives the same values as before.
        """
        if len(self.before) != len(self.after):
            return (
                f"`{self.name}` has {len(self.after)} column{'s' if len(self.after) != 1 else ''}, "
                f"and had {len(self.before)}: Spark refuses the statement if the numbers "
                "differ, and otherwise writes values into other columns"
            )
        for number, (old, new) in enumerate(zip(self.before, self.after, strict=True), start=1):
            if old != new and (old in self.after or new in self.before):
                return (
                    f"column {number} of `{self.name}` is `{new}` now, and was `{old}`: the "
                    "statement writes values into other columns"
                )
        return ""


class _ProjectTables:
    """The tables of a project, by the names in its statements."""

    def __init__(self, inputs: RuleInputs) -> None:
        self._inputs = inputs

    @cached_property
    def _full_names(self) -> Mapping[str, str]:
        after = self._inputs.after
        short = {plain_name(self._inputs.names.short_name(fqn)): fqn for fqn in after}
        return short | {plain_name(fqn): fqn for fqn in after}

    def list_columns(self, table: exp.Table, holder: Model) -> _MovedColumns | None:
        """Lists the columns of a table in a statement of `holder`; None if a side is unknown."""
        fqn: str | None
        if isinstance(table.this, d.MacroVar):
            fqn = holder.fqn if table.this.name.lower() in _OF_OWN else None
        else:
            fqn = self._full_names.get(table_name(table))
        if fqn is None or fqn in self._inputs.from_base:
            return None
        sides = [
            _list_column_names(models.get(fqn))
            for models in (self._inputs.before, self._inputs.after)
        ]
        if sides[0] is None or sides[1] is None:
            return None
        return _MovedColumns(self._inputs.names.short_name(fqn), sides[0], sides[1])


def _list_column_names(model: Model | None) -> ColumnNames | None:
    types = list_known_types(model) if model is not None else None
    return tuple(name.lower() for name in types) if types else None


@on_project(BY_POSITION)
def check_inserts(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Unchanged statements around models, if the columns of their tables moved."""
    tables = _ProjectTables(inputs)
    for fqn, model in inputs.after.items():
        before = inputs.before.get(fqn)
        if before is None or not (written := _list_inserts(model)):
            continue
        known = {text for _, _, text in _list_inserts(before)}
        for slot, insert, text in written:
            if text in known and (why := _explain_moved_columns(insert, model, tables)):
                into = f"INSERT INTO {insert.this.sql(dialect=model.dialect)}"
                yield RuleObservation(
                    BY_POSITION,
                    f"`{into}` in {slot} names no columns, and {why}.",
                    "the statement names its columns, or says BY NAME",
                    model=model,
                    subject=(f"{into} in {slot}",),
                    anchors=(" ".join(text.split()[:3]), "INSERT"),
                )


def _list_inserts(model: Model) -> list[tuple[str, exp.Expr, str]]:
    """Lists (slot, statement, text) of each INSERT without columns around a model's query."""
    if not (getattr(model, "pre_statements_", None) or getattr(model, "post_statements_", None)):
        return []
    return [
        (slot, statement, statement.sql(dialect=model.dialect))
        for slot, statements in (
            ("pre-statement", model.pre_statements),
            ("post-statement", model.post_statements),
        )
        for statement in statements
        if isinstance(statement, exp.Insert)
        and isinstance(statement.this, exp.Table)
        and not statement.args.get("by_name")
    ]


def _explain_moved_columns(insert: exp.Expr, holder: Model, tables: _ProjectTables) -> str:
    """Why a statement has another effect now; empty if it has the same effect."""
    target = tables.list_columns(insert.this, holder)
    source, alone = _find_star_source(insert)
    read = tables.list_columns(source, holder) if source is not None else None
    if target is not None and read is not None and alone and target.after == read.after:
        return ""  # both moved in the same way
    # A star and a list of values are both matched with the target's columns by position.
    return next(
        (
            moved.move_description
            for moved in (target, read)
            if moved is not None and moved.move_description
        ),
        "",
    )


def _find_star_source(insert: exp.Expr) -> tuple[exp.Table | None, bool]:
    """The table whose columns an INSERT takes by a star; true if it takes no other columns."""
    if isinstance(insert.args.get("source"), exp.Table):  # INSERT INTO target TABLE source
        return insert.args["source"], True
    query = insert.expression
    if not isinstance(query, exp.Select) or query.args.get(FROM) is None:
        return None, False
    items, table = query.expressions, query.args[FROM].this
    stars = [item for item in items if isinstance(item, exp.Star) or item.is_star]
    if not stars or not isinstance(table, exp.Table):
        return None, False
    whole = isinstance(stars[0], exp.Star) and not any(stars[0].args.values())
    named = isinstance(stars[0], exp.Column) and stars[0].table == table.alias_or_name
    if not (named or (whole and not query.args.get("joins"))):
        return None, False
    return table, len(items) == 1
