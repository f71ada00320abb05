"""A model's query for rules, and the key of its rows.

The written and the rendered form have scopes, and each is computed once. The key comes from the
grain, or otherwise from the kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlmesh.core import dialect as d
from sqlmesh.core.macros import RuntimeStage
from sqlmesh.utils.errors import SQLMeshError

from ci_bot.worker.sql.selects import ScopedQuery, read_selects
from ci_bot.worker.sqlmesh_compat import is_scd_type_2, is_sql_model

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

# A syntax tree is walked once: all rules use one index of nodes by type.


class ExpressionTree:
    """The nodes of one expression, in the order of a breadth-first walk."""

    def __init__(self, root: exp.Expr | None) -> None:
        self.root = root
        self._by_type: dict[type, list[Any]] | None = None
        self._answers: dict[tuple[type, ...], list[Any]] = {}

    def find_all(self, *types: type) -> list[Any]:
        """Finds every node of the given types or of a subtype."""
        if types not in self._answers:
            index = self._index_nodes()
            found = [known for known in index if issubclass(known, types)]
            self._answers[types] = [node for known in found for node in index[known]]
        return self._answers[types]

    def has_any(self, *types: type) -> bool:
        """Whether there is any such node."""
        return bool(self.find_all(*types))

    def _index_nodes(self) -> dict[type, list[Any]]:
        if self._by_type is None:
            self._by_type = {}
            for node in _walk_expression_nodes(self.root):
                self._by_type.setdefault(type(node), []).append(node)
        return self._by_type


def _walk_expression_nodes(root: exp.Expr | None) -> Iterator[exp.Expr]:
    if root is None:
        return
    queue = [root]
    for node in queue:
        yield node
        queue.extend(node.iter_expressions())


# While SQLMesh loads a project, it renders start and end as the epoch. If a rule must distinguish
# them, the query is rendered again with days that do not occur in real models.
EPOCH = "1970-01-01"

SENTINEL_START = "1971-03-05"

SENTINEL_END = "1973-07-09"

SENTINEL_NOW = "1977-11-23"


class ModelQuery:
    """One SQL model's query.

    `written` is the query in the file, with macro variables; None if it is Jinja or one big macro.
    In `rendered_query` macros are expanded, columns are qualified if schemas are known, and the
    interval's dates are the epoch. Trees and scopes are made on first use.
    """

    def __init__(
        self, model: Model, written: exp.Query | None, embedded: Mapping[str, Model]
    ) -> None:
        self._model = model
        self._embedded = embedded
        self.written = written

    @cached_property
    def rendered_query(self) -> exp.Query | None:
        """The query in the form that SQLMesh runs; None if rendering needs the engine, or fails."""
        try:
            query = self._render_query()
            if query is not None and self._may_fold_to_false(query) and _is_folded_to_false(query):
                query = self._render_query(start=SENTINEL_START, end=SENTINEL_END)
        except Exception:  # a macro of the project may raise anything; the load reports it
            return None
        return query

    @cached_property
    def rendered_apart(self) -> exp.Query | None:
        """As `rendered_query`, but as in a run, with three different days as start, end and now."""
        return self._render_apart(RuntimeStage.EVALUATING)

    @cached_property
    def rendered_for_creation(self) -> exp.Query | None:
        """As `rendered_apart`, but as SQLMesh renders it to create the table or view."""
        return self._render_apart(RuntimeStage.CREATING)

    @cached_property
    def renders_one_text(self) -> bool:
        """Whether two renderings of one run are the same: no macro reads a clock or is random."""
        if not (self.hides_structure or self._model.python_env):
            return True
        return self._render_apart(RuntimeStage.EVALUATING) == self.rendered_apart

    def _render_apart(self, stage: RuntimeStage) -> exp.Query | None:
        try:
            return self._render_query(
                start=SENTINEL_START,
                end=SENTINEL_END,
                execution_time=SENTINEL_NOW,
                runtime_stage=stage,
            )
        except Exception:  # a macro of the project may raise anything
            return None

    @cached_property
    def rendered_as_written(self) -> exp.Query | None:
        """As `rendered_query`, but with columns as written, even if schemas are known."""
        try:
            return self._render_query(
                start=SENTINEL_START, end=SENTINEL_END, needs_optimization=False
            )
        except Exception:  # a macro of the project may raise anything
            return None

    @cached_property
    def knows_its_tables(self) -> bool:
        """Whether the columns of every table that the query reads are known.

        Otherwise SQLMesh does not add table names to columns, and does not expand stars.
        """
        known = {plain_name(name) for name in _list_schema_tables(self._model.mapping_schema)}
        return all(plain_name(name) in known for name in self._model.depends_on - {self._model.fqn})

    def _render_query(self, **when: Any) -> exp.Query | None:
        query = self._model.render_query(**when)
        return query if query is None else _inline_embedded_models(query, self._embedded, when)

    def _may_fold_to_false(self, query: exp.Expr) -> bool:
        """Whether a strict comparison with start or end may fold to FALSE: both are the epoch."""
        if self.written is None or self.hides_structure:
            return True
        strict = self.written_tree.find_all(exp.LT, exp.GT, exp.NEQ, exp.EQ)
        return any(node.find(d.MacroVar) is not None for node in strict)

    @cached_property
    def written_tree(self) -> ExpressionTree:
        return ExpressionTree(self.written)

    @cached_property
    def rendered_tree(self) -> ExpressionTree:
        return ExpressionTree(self.rendered_query)

    @property
    def tree(self) -> ExpressionTree:
        """The tree of the written form if it shows the structure, else of the rendered form."""
        if self.written is not None and not self.hides_structure:
            return self.written_tree
        return self.rendered_tree if self.rendered_query is not None else self.written_tree

    @cached_property
    def hides_structure(self) -> bool:
        """Whether macro functions or Jinja may contain joins, filters or columns."""
        return self.written is None or self.written_tree.has_any(
            d.MacroFunc, d.JinjaQuery, d.JinjaStatement
        )

    @cached_property
    def root(self) -> ScopedQuery:
        """The rendered form with its names resolved."""
        return read_selects(self.rendered_query)

    @cached_property
    def written_root(self) -> ScopedQuery:
        """The written form with its names resolved."""
        return read_selects(self.written)

    @property
    def known_root(self) -> ScopedQuery:
        """The rendered form, or the written form if there is no other."""
        return self.root or self.written_root

    @property
    def scopes(self) -> ScopedQuery:
        """The form of `tree`; it is cheaper than `root` if columns need no table names."""
        return self.written_root if self.tree is self.written_tree else self.root


class ModelQueries:
    """The queries of models; all rules of a run share them.

    Args:
        sides: Models by fully qualified name, of a project before and after. Models of kind
            EMBEDDED have no table: each query contains their queries, as in SQLMesh's runs.
    """

    def __init__(self, *sides: Mapping[str, Any]) -> None:
        self._known: dict[int, tuple[Model, ModelQuery | None]] = {}
        self._embedded: dict[int, Mapping[str, Model]] = {}
        for side in sides:
            embedded = {name: model for name, model in side.items() if model.kind.is_embedded}
            if embedded:
                self._embedded |= dict.fromkeys(map(id, side.values()), embedded)

    def query_of(self, model: Model) -> ModelQuery | None:
        """Returns the query of `model`; None if it has none."""
        known = self._known.get(id(model))
        if known is None:
            query = _make_model_query(model, self._embedded.get(id(model), {}))
            known = (model, query)  # keeps the model alive, so its id cannot be used again
            self._known[id(model)] = known
        return known[1]


def _make_model_query(model: Model, embedded: Mapping[str, Model]) -> ModelQuery | None:
    if not is_sql_model(model):
        return None
    try:
        written = model.query
    except (SqlglotError, SQLMeshError):
        written = None
    query = ModelQuery(model, written if isinstance(written, exp.Query) else None, embedded)
    if query.written is None and query.rendered_query is None:
        return None
    return query


def _inline_embedded_models(
    query: exp.Query, embedded: Mapping[str, Model], when: Mapping[str, Any]
) -> exp.Query:
    """Inlines the embedded models that a query reads, as SQLMesh does."""
    if not embedded:
        return query
    names = {exp.table_name(table, identify=True) for table in query.find_all(exp.Table)}
    inner = {
        name: _inline_embedded_models(rendered, embedded, when)
        for name in names & embedded.keys()
        if (rendered := embedded[name].render_query(**when)) is not None
    }
    return replace_tables_by_queries(query, inner) if inner else query


def _list_schema_tables(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yields the table names in SQLMesh's mapping of catalogs, schemas, tables and columns."""
    for name, inner in schema.items():
        if isinstance(inner, Mapping) and any(isinstance(one, Mapping) for one in inner.values()):
            yield from (f"{name}.{rest}" for rest in _list_schema_tables(inner))
        else:
            yield name


def inline_model_queries(query: exp.Query, models: Mapping[str, Model]) -> exp.Query:
    """Replaces the tables of `models` in a query by their queries.

    Returns the query itself if it reads none of them, or if that fails.
    """
    try:
        return _inline_embedded_models(query, models, {})
    except Exception:  # a macro of the project may raise anything
        return query


def replace_tables_by_queries(query: exp.Query, queries: Mapping[str, exp.Query]) -> exp.Query:
    """Replaces tables in a query by other queries.

    Args:
        queries: trees by the fully qualified names of the tables.
    """

    def replace_table(node: exp.Expr) -> exp.Expr:
        name = exp.table_name(node, identify=True) if isinstance(node, exp.Table) else ""
        inner = queries.get(name)
        return node if inner is None else inner.copy().subquery(alias=node.alias or node.name)

    return cast("exp.Query", query.copy().transform(replace_table, copy=False))


def _is_folded_to_false(query: exp.Expr) -> bool:
    """Whether a condition is folded to FALSE: `x >= start AND x < end` if both are the epoch."""
    return any(
        isinstance(where.this, exp.Boolean) and not where.this.this
        for where in query.find_all(exp.Where)
    )


def plain_name(fqn: str) -> str:
    """Writes a model's name in the form of `table_name`: lower case, without quotes."""
    return fqn.replace('"', "").replace("`", "").lower()


# The position of a node in a query, in words that do not change if an alias or CTE is renamed.


def name_query_part(node: exp.Expr, query: ModelQuery) -> str:
    """Names the result column or the clause that contains a node of the query."""
    below, above = node, node.parent
    while above is not None and not isinstance(above, exp.Select):
        below, above = above, above.parent
    if above is None:
        return "the query"
    top = above.parent is None or any(
        above is branch.node
        for root in (query.root, query.written_root)
        for branch in root.branches
    )
    if below.arg_key == "expressions":
        return f"column {below.alias_or_name}" if top else "a column of a subquery"
    clause = str(below.arg_key).strip("_").upper()
    return clause if top else f"{clause} of a subquery"


def list_grain_columns(grains: Sequence[exp.Expr]) -> tuple[str, ...]:
    """Lists the unquoted columns of a model's grain (`model.grains`); empty if it has none.

    Each of several grains is a key alone, so the first is enough. SQLMesh's own `model.on` joins on
    all of them together, and also on the model's references. With it, a row whose reference changed
    would count as one dropped and one added row.
    """
    if not grains:
        return ()
    grain = grains[0]
    if isinstance(grain, exp.Alias):
        grain = grain.this
    grain = grain.unnest()
    parts = grain.expressions if isinstance(grain, (exp.Tuple, exp.Array)) else [grain]
    return tuple((part.this.name if isinstance(part, exp.Alias) else part.name) for part in parts)


def list_key_columns(model: Model) -> tuple[str, ...]:
    """Lists the unquoted columns that identify a row of a model; empty if it names none.

    Without a grain these are the columns by which SQLMesh itself identifies rows: the unique key,
    and the start of validity if a key has one row for each version (SCD type 2). If the key
    contains an expression, the list is empty. dbt's `unique_key` also becomes
    `ModelMeta.unique_key`.
    """
    if grain := list_grain_columns(model.grains):
        return grain
    unique, kind = list(model.unique_key), model.kind
    if unique and is_scd_type_2(kind):
        unique.append(kind.valid_from_name)
    if not all(isinstance(part, (exp.Column, exp.Identifier)) for part in unique):
        return ()
    return tuple(part.name for part in unique)
