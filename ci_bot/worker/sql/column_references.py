"""Columns that a query or an audit names: missing columns, and columns by position.

A missing column is in none of the tables. GROUP BY and ORDER BY can name columns by their position,
such as `ORDER BY 2`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlmesh.core.audit.builtin import BUILT_IN_AUDITS
from sqlmesh.core.macros import RuntimeStage

from ci_bot.worker.runtime import silence_worker_log
from ci_bot.worker.sql.model_query import ModelQuery, plain_name
from ci_bot.worker.sql.selects import (
    ScopedQuery,
    ScopedSelect,
    SelectSource,
    read_selects,
    table_name,
)

if TYPE_CHECKING:
    from sqlmesh.core.audit import ModelAudit, StandaloneAudit
    from sqlmesh.core.model import Model

ColumnsOf = Callable[[str], frozenset[str] | None]

# Names that Spark resolves although no table has them: parts of a file's metadata, and functions
# that are called without brackets.
_HIDDEN = frozenset(
    {
        "_metadata", "_file", "_pos", "_spec_id", "_partition", "_deleted", "current_user", "user",
        "session_user", "current_date", "current_timestamp", "current_time", "localtimestamp",
        "current_catalog", "current_database", "current_schema", "current_timezone", "now",
        "grouping__id",
    }
)  # fmt: skip


def list_missing_columns(
    query: exp.Expr | ScopedQuery, columns_of: ColumnsOf
) -> Iterator[tuple[str, str | None]]:
    """Yields each missing column, with the table that should have it, or None for any of several.

    If an unknown source could have the column, the column does not count as missing.

    Args:
        columns_of: returns the columns of a table in lower case, or None if they are not known.
    """
    read = query if isinstance(query, ScopedQuery) else read_selects(query)
    listing = _ListedColumns(columns_of)
    for select in read.selects:
        yield from _list_missing_in_select(select, listing)


class _ListedColumns:
    """The columns of sources, each found only once; None if they are not known."""

    def __init__(self, columns_of: ColumnsOf) -> None:
        self._columns_of = columns_of
        self._known: dict[ScopedQuery, frozenset[str] | None] = {}

    def map_sources(self, select: ScopedSelect) -> dict[str, frozenset[str] | None]:
        """Maps the aliases of a SELECT's sources to their columns; behind a PIVOT none is known."""
        return {
            alias: None if alias in select.pivoted else self._list_source_columns(source)
            for alias, source in select.sources.items()
        }

    def _list_source_columns(self, source: SelectSource) -> frozenset[str] | None:
        if isinstance(source, ScopedQuery):
            if source not in self._known:
                self._known[source] = self._list_result_columns(source)
            return self._known[source]
        # A table with new names for its columns, a function, or an older version of a table.
        renamed = bool(source.args.get("alias") and source.args["alias"].columns)
        odd = renamed or any(source.args.get(name) for name in ("when", "version", "changes"))
        is_named = isinstance(source.this, exp.Identifier)
        return self._columns_of(table_name(source)) if is_named and not odd else None

    def _list_result_columns(self, query: ScopedQuery) -> frozenset[str] | None:
        if query.names:  # `q(a, b)` gives its columns other names
            return frozenset(query.names)
        if not query.branches or query.branches[0].laterals:
            return None
        first, found = query.branches[0], set[str]()
        for name, item in first.results:
            if not item.is_star:
                found.add(name)
                continue
            read = list(self.map_sources(first).values())
            plain = isinstance(item, exp.Star) and not any(item.args.values())
            if not plain or None in read or not read:
                return None
            found.update(*(columns for columns in read if columns is not None))
        return frozenset(found - {""})


def _list_missing_in_select(
    select: ScopedSelect, listing: _ListedColumns
) -> Iterator[tuple[str, str | None]]:
    sources = listing.map_sources(select)
    around = [listing.map_sources(one) for one in select.iterate_selects_around()]
    every = [columns for known in (sources, *around) for columns in known.values()]
    given = {name for columns in every for name in columns or ()} | _HIDDEN
    given |= {item.alias.lower() for item in select.node.expressions if item.alias}
    for column in select.columns:
        name, table = column.name.lower(), column.table.lower()
        if isinstance(column.this, exp.Star) or name in _HIDDEN or _is_lambda_parameter(column):
            continue
        if table in sources:
            known = sources[table]
            if known is not None and name not in known:
                yield name, _find_only_table(select, [table])
        elif (
            sources
            and column.find_ancestor(exp.Select) is select.node
            and not (select.laterals or select.pivoted)
            and not any(table in known for known in around)
        ):
            # A qualifier that names no table is a column, and the rest names a field of it.
            parts = [part.name.lower() for part in column.parts]
            read = parts[parts[0] in sources]
            if None not in every and read not in given:
                yield read, _find_only_table(select, list(sources))


def _is_lambda_parameter(column: exp.Column) -> bool:
    around = column.find_ancestor(exp.Lambda)
    while around is not None:
        if any(
            parameter.name.lower() in (column.name.lower(), column.table.lower())
            for parameter in around.expressions
        ):
            return True
        around = around.find_ancestor(exp.Lambda)
    return False


def _find_only_table(select: ScopedSelect, aliases: Sequence[str]) -> str | None:
    table = select.find_table(aliases[0]) if len(aliases) == 1 else None
    return table_name(table) if table is not None else None


# Faults that stop an audit: missing columns, and missing arguments.
#
# SQLMesh renders an audit in the same way as in a run; the engine gets no query.


_UNDEFINED = re.compile(r"Macro variable '(\w+)' is undefined")
# A variable of the audit's query. In `rank_@c` it is part of a name: there SQLMesh inserts the name
# of a lambda's parameter.
_VARIABLE = re.compile(r"(?<!\w)@(\w+)\b(?!\s*\()")
# Arguments of a call that are no variables of the query.
_OF_THE_CALL = frozenset({"blocking", "skip"})

_GIVEN = frozenset({"this_model"})


@dataclass(frozen=True)
class AuditFault:
    """A missing column or argument that an audit needs.

    Attributes:
        audit: the audit as SQLMesh defines it.
        column: the missing column; None if an argument is missing.
        table: the table of the column; None if it is the audited model or unknown.
        argument: the missing argument; None if a column is missing.
    """

    audit: ModelAudit | StandaloneAudit = field(compare=False)
    column: str | None = None
    table: str | None = None
    argument: str | None = None

    @property
    def is_own(self) -> bool:
        """Whether the project defines the audit."""
        return self.audit.name not in BUILT_IN_AUDITS


def list_audit_faults(model: Model, columns_of: ColumnsOf) -> Iterator[AuditFault]:
    """Lists the faults of a model's audits; an audit that is switched off has no faults."""
    own = columns_of(plain_name(model.fqn))
    if own is None:
        return
    for audit, arguments in model.audits_with_args:
        if audit.skip or str(arguments.get("skip", "")).lower() == "true":
            continue
        given = {name: value for name, value in arguments.items() if name not in _OF_THE_CALL}
        faults = _check_built_in_audit(audit, given, own)
        if faults is None:
            faults = _check_rendered_audit(model, audit, given, columns_of)
        yield from dict.fromkeys(faults)


def list_standalone_audit_faults(audit: StandaloneAudit, columns_of: ColumnsOf) -> list[AuditFault]:
    """Lists the faults of an audit that belongs to no model."""
    if audit.skip:
        return []
    try:
        with silence_worker_log("sqlmesh.core.renderer"):
            missing = list(list_missing_columns(audit.render_audit_query(), columns_of))
    except Exception as error:  # the project's own macros run in here
        return _judge_undefined_name(audit, error)
    return [AuditFault(audit, column=column, table=table) for column, table in missing]


def _judge_undefined_name(
    audit: ModelAudit | StandaloneAudit, error: Exception
) -> list[AuditFault]:
    """Lists the undefined name of an error; empty for other errors.

    Another error may not occur in a run, because there a macro can query the engine.
    """
    undefined = _UNDEFINED.search(str(error))
    return [AuditFault(audit, argument=undefined.group(1))] if undefined else []


def _check_built_in_audit(
    audit: ModelAudit | StandaloneAudit, given: Mapping[str, Any], own: frozenset[str]
) -> list[AuditFault] | None:
    """Checks SQLMesh's own audits without rendering: they read the columns in their arguments.

    Returns None for other audits, or if the arguments are not enough for a verdict.
    """
    if audit.name not in BUILT_IN_AUDITS:
        return None
    read: list[str] = []
    for value in given.values():
        for part in value if isinstance(value, list | tuple) else [value]:
            if not isinstance(part, exp.Expression) or _is_compound_argument(part):
                return None
            read += [column.parts[0].name.lower() for column in part.find_all(exp.Column)]
    defined = {definition.name for definition in audit.macro_definitions}
    wanted = (
        set(_VARIABLE.findall(audit.query_.sql))
        - defined
        - set(given)
        - set(audit.defaults)
        - _GIVEN
    )
    return [
        *(AuditFault(audit, column=name) for name in read if name not in own),
        *(AuditFault(audit, argument=name) for name in sorted(wanted)),
    ]


def _is_compound_argument(part: exp.Expr) -> bool:
    """Whether an argument contains a query, a macro, or a lambda with parameters of its own."""
    return any(
        isinstance(node, exp.Query | exp.Lambda) or node.key.startswith(("macro", "jinja"))
        for node in part.walk()
    )


def _check_rendered_audit(
    model: Model,
    audit: ModelAudit | StandaloneAudit,
    given: Mapping[str, Any],
    columns_of: ColumnsOf,
) -> list[AuditFault]:
    try:
        with silence_worker_log("sqlmesh.core.renderer"):
            query = model.render_audit_query(audit, **given, runtime_stage=RuntimeStage.AUDITING)
        missing = list(list_missing_columns(query, columns_of))
    except Exception as error:  # the project's own macros run in here
        return _judge_undefined_name(audit, error)
    mine = plain_name(model.fqn)
    return [
        AuditFault(audit, column=column, table=None if table in (None, mine) else table)
        for column, table in missing
    ]


@dataclass(frozen=True)
class ClauseKey:
    """A key of GROUP BY or ORDER BY.

    Attributes:
        position: the written position, from 1; None if the key is not a position.
        name: the column of the key, by its name in the result.
        expression: the computation of that column, without the names of tables.
        direction: for ORDER BY, DESC and the order of NULLs, if they are not the default.
    """

    position: int | None
    name: str
    expression: str
    direction: str

    def means_same_column(self, other: ClauseKey) -> bool:
        """Whether both keys mean one column: only its name or only its computation may differ."""
        return self.direction == other.direction and (
            self.expression == other.expression or self.name == other.name
        )


def pair_clause_queries(
    before: ModelQuery, after: ModelQuery, clause: str
) -> Iterator[tuple[exp.Query, exp.Query]]:
    """Pairs the queries that have the clause (`group` or `order`), before and after, in order.

    Positions refer to the written columns; after a star they refer to the columns that SQLMesh puts
    in its place. There are no pairs if a query was added or removed, because their order is then
    unclear.
    """
    for form in ("rendered_as_written", "rendered_query"):
        sides = [
            _list_queries_with_clause(getattr(query, form), clause) for query in (before, after)
        ]
        if len(sides[0]) != len(sides[1]):
            return
        hidden = any(_is_behind_star(query, clause) for side in sides for query in side)
        if not hidden:
            yield from zip(*sides, strict=True)
            return


def list_clause_keys(query: exp.Query, clause: str) -> list[ClauseKey]:
    """Lists the keys of a query's GROUP BY or ORDER BY that depend on its rows."""
    keys = [_read_clause_key(query, key) for key in query.args[clause].expressions]
    return [key for key in keys if key is not None]


def describe_moved_positions(
    before: Sequence[ClauseKey], after: Sequence[ClauseKey], clause: str
) -> list[str]:
    """Describes each position that is written on both sides but means different columns."""
    old = {key.position: key for key in before if key.position is not None}
    return [
        f"`{key.position}` in {clause} now means `{key.name}`, no longer `{was.name}`"
        for key in after
        if key.position is not None
        and (was := old.get(key.position)) is not None
        and not was.means_same_column(key)
    ]


def render_expression_text(node: exp.Expr) -> str:
    """Renders an expression without its alias, names of tables, and quotes, in lower case."""
    bare = node.unalias().copy()
    for column in bare.find_all(exp.Column):
        for part in ("table", "db", "catalog"):
            column.set(part, None)
    for identifier in bare.find_all(exp.Identifier):
        identifier.set("quoted", False)
    return str(bare.sql(dialect="spark", comments=False)).lower()


def _list_queries_with_clause(tree: exp.Expr, clause: str) -> list[exp.Query]:
    if not isinstance(tree, exp.Query):
        return []
    return [query for query in tree.find_all(exp.Query) if query.args.get(clause) is not None]


def _parse_position(key: exp.Expr) -> int | None:
    inner = key.this if isinstance(key, exp.Ordered) else key
    is_position = isinstance(inner, exp.Literal) and not inner.is_string and inner.name.isdigit()
    return int(inner.name) if is_position else None


def _is_behind_star(query: exp.Query, clause: str) -> bool:
    highest = max((_parse_position(key) or 0 for key in query.args[clause].expressions), default=0)
    return any(item.is_star for item in query.selects[:highest])


def _read_clause_key(query: exp.Query, key: exp.Expr) -> ClauseKey | None:
    position, items = _parse_position(key), query.selects
    node = key.this if isinstance(key, exp.Ordered) else key
    if position is not None:
        if not 1 <= position <= len(items):
            return None
        node = items[position - 1]
    elif isinstance(node, exp.Column) and not node.table:
        name = node.name.lower()
        node = next((item for item in items if item.alias_or_name.lower() == name), node)
    inner = node.unalias()
    if position is None and inner.find(exp.Column, exp.AggFunc) is None:
        return None  # a constant does not sort
    expression = render_expression_text(node)
    named = next((item for item in items if render_expression_text(item) == expression), node)
    name = (named.alias_or_name or expression).lower()
    direction = ""
    if isinstance(key, exp.Ordered):
        is_first, descends = bool(key.args.get("nulls_first")), bool(key.args.get("desc"))
        direction = f"{' DESC' if descends else ''}"
        if is_first == descends:
            direction += f" NULLS {'FIRST' if is_first else 'LAST'}"
    return ClauseKey(position, name, expression, direction)
