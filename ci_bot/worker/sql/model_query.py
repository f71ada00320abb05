"""A model's query as rules read it: written and rendered, with its scopes, computed once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, build_scope
from sqlmesh.core import dialect as d
from sqlmesh.core.macros import RuntimeStage
from sqlmesh.utils.errors import SQLMeshError

from ci_bot.worker.sqlmesh_compat import is_sql_model

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

# A syntax tree that was walked once: nodes by type, for the many rules that ask.


class ExpressionTree:
    """The nodes of one expression, in the order of a breadth-first walk."""

    def __init__(self, root: exp.Expr | None) -> None:
        self.root = root
        self._by_type: dict[type, list[Any]] | None = None
        self._answers: dict[tuple[type, ...], list[Any]] = {}

    def find_all(self, *types: type) -> list[Any]:
        """Every node of the given types or of a subtype of theirs."""
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
            for node in _walk_nodes(self.root):
                self._by_type.setdefault(type(node), []).append(node)
        return self._by_type


def _walk_nodes(root: exp.Expr | None) -> Iterator[exp.Expr]:
    if root is None:
        return
    queue = [root]
    for node in queue:
        yield node
        queue.extend(node.iter_expressions())


MAX_DEPTH = 12
# While a project is loaded, SQLMesh renders start and end at the epoch. If the two have to be told
# apart, the query is rendered once more between days that nobody writes into a model.
EPOCH = "1970-01-01"

SENTINEL_START = "1971-03-05"

SENTINEL_END = "1973-07-09"

SENTINEL_NOW = "1977-11-23"


class ModelQuery:
    """One SQL model's query.

    `written` is as in the file, with macro variables (None if it is Jinja or one big macro);
    `rendered` has macros expanded and columns qualified where schemas are known, with the dates of
    the interval at the epoch. Trees and scopes are made when they are first asked for.
    """

    def __init__(
        self, model: Model, written: exp.Query | None, embedded: Mapping[str, Model]
    ) -> None:
        self._model = model
        self._embedded = embedded
        self.written = written

    @cached_property
    def rendered_query(self) -> exp.Query | None:
        """The query as SQLMesh would run it; None if that takes the engine, or fails."""
        try:
            query = self._render_query()
            if query is not None and self._may_fold(query) and _is_emptied(query):
                query = self._render_query(start=SENTINEL_START, end=SENTINEL_END)
        except Exception:  # a macro of the project may raise anything; the load reports it
            return None
        return query

    @cached_property
    def rendered_apart(self) -> exp.Query | None:
        """As `rendered`, with start, end and now at three days, and as in a run; None as there."""
        return self._render_apart(RuntimeStage.EVALUATING)

    @cached_property
    def rendered_for_creation(self) -> exp.Query | None:
        """As `rendered_apart`, as SQLMesh renders it for a table or view that is not there yet."""
        return self._render_apart(RuntimeStage.CREATING)

    @cached_property
    def renders_one_text(self) -> bool:
        """Whether one run is rendered alike twice: not with chance or a clock in a macro."""
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
        """As `rendered`, with columns as they are written, whether or not schemas are known."""
        try:
            return self._render_query(
                start=SENTINEL_START, end=SENTINEL_END, needs_optimization=False
            )
        except Exception:  # a macro of the project may raise anything
            return None

    @cached_property
    def knows_its_tables(self) -> bool:
        """Whether the columns of every table that it reads are known.

        Otherwise SQLMesh renders columns without their tables, and stars as they stand.
        """
        known = {plain_name(name) for name in _list_schema_tables(self._model.mapping_schema)}
        return all(plain_name(name) in known for name in self._model.depends_on - {self._model.fqn})

    def _render_query(self, **when: Any) -> exp.Query | None:
        query = self._model.render_query(**when)
        return query if query is None else _inline_embedded_models(query, self._embedded, when)

    def _may_fold(self, query: exp.Expr) -> bool:
        """Whether a comparison with start or end is strict: on one epoch day it folds to FALSE."""
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
        """The tree of the written form where it shows its structure, else of the rendered one."""
        if self.written is not None and not self.hides_structure:
            return self.written_tree
        return self.rendered_tree if self.rendered_query is not None else self.written_tree

    @cached_property
    def hides_structure(self) -> bool:
        """Whether macro functions or Jinja stand where joins, filters or columns could be."""
        return self.written is None or self.written_tree.has_any(
            d.MacroFunc, d.JinjaQuery, d.JinjaStatement
        )

    @cached_property
    def root(self) -> Scope | None:
        """The scopes of the rendered form."""
        return _build_scope(self.rendered_query)

    @cached_property
    def written_root(self) -> Scope | None:
        """The scopes of the written form."""
        return _build_scope(self.written)

    @property
    def scopes(self) -> Scope | None:
        """The scopes of `tree`: cheaper than `root` where columns need not be qualified."""
        return self.written_root if self.tree is self.written_tree else self.root


class ModelQueries:
    """Queries by model object, so that every rule of a run shares them.

    Args:
        sides: Models by fully qualified name, of a project before and after. Those of kind
            EMBEDDED have no table: each query holds their queries, as SQLMesh runs it.
    """

    def __init__(self, *sides: Mapping[str, Any]) -> None:
        self._known: dict[int, tuple[Model, ModelQuery | None]] = {}
        self._embedded: dict[int, Mapping[str, Model]] = {}
        for side in sides:
            embedded = {name: model for name, model in side.items() if model.kind.is_embedded}
            if embedded:
                self._embedded |= dict.fromkeys(map(id, side.values()), embedded)

    def query_of(self, model: Model) -> ModelQuery | None:
        """The query of `model`; None for models that have none."""
        known = self._known.get(id(model))
        if known is None:
            query = _make_query(model, self._embedded.get(id(model), {}))
            known = (model, query)  # the model is kept, so its id stays its own
            self._known[id(model)] = known
        return known[1]


def _make_query(model: Model, embedded: Mapping[str, Model]) -> ModelQuery | None:
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
    names = embedded and {
        exp.table_name(table, identify=True) for table in query.find_all(exp.Table)
    }
    if not names or names.isdisjoint(embedded):
        return query

    def put_in(node: exp.Expr) -> exp.Expr:
        model = (
            embedded.get(exp.table_name(node, identify=True))
            if isinstance(node, exp.Table)
            else None
        )
        inner = model.render_query(**when) if model is not None else None
        if model is None or inner is None:
            return node
        return _inline_embedded_models(inner, embedded, when).subquery(
            alias=node.alias or model.view_name
        )

    found = query.copy().transform(put_in, copy=False)
    return cast("exp.Query", found)  # a table is never the root


def _list_schema_tables(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yields the table names in SQLMesh's mapping of catalogs, schemas, tables and columns."""
    for name, inner in schema.items():
        if isinstance(inner, Mapping) and any(isinstance(one, Mapping) for one in inner.values()):
            yield from (f"{name}.{rest}" for rest in _list_schema_tables(inner))
        else:
            yield name


def inline_model_queries(query: exp.Query, models: Mapping[str, Model]) -> exp.Query:
    """Replaces the tables of `models` in a query by their queries; returns the query itself if it
    reads none.
    """
    try:
        return _inline_embedded_models(query, models, {})
    except Exception:  # a macro of the project may raise anything
        return query


def put_queries(query: exp.Query, queries: Mapping[str, exp.Query]) -> exp.Query:
    """The query with others in the place of tables.

    Args:
        queries: trees by the fully qualified names of the tables.
    """

    def put_in(node: exp.Expr) -> exp.Expr:
        name = exp.table_name(node, identify=True) if isinstance(node, exp.Table) else ""
        inner = queries.get(name)
        return node if inner is None else inner.copy().subquery(alias=node.alias or node.name)

    return cast("exp.Query", query.copy().transform(put_in, copy=False))


def _is_emptied(query: exp.Expr) -> bool:
    """Whether a condition was folded to FALSE, as `x >= start AND x < end` is on one epoch day."""
    return any(
        isinstance(where.this, exp.Boolean) and not where.this.this
        for where in query.find_all(exp.Where)
    )


def _build_scope(query: exp.Query | None) -> Scope | None:
    if not isinstance(query, exp.Query):
        return None
    try:
        return build_scope(query)
    except (SqlglotError, RecursionError, KeyError, AttributeError):
        return None


def iterate_selects(root: Scope | None) -> Iterator[Scope]:
    """Every scope below and including `root` whose expression is a SELECT."""
    if root is None:
        return
    for scope in root.traverse():
        if isinstance(scope.expression, exp.Select):
            yield scope


def list_outer_scopes(root: Scope | None) -> list[Scope]:
    """The scopes whose projections are the model's columns: one, or the branches of a UNION."""
    if root is None:
        return []
    expression = root.expression
    if isinstance(expression, exp.SetOperation):
        return [leaf for branch in root.union_scopes or [] for leaf in list_outer_scopes(branch)]
    if isinstance(expression, exp.Subquery) and root.subquery_scopes:
        return list_outer_scopes(root.subquery_scopes[0])
    return [root] if isinstance(expression, exp.Select) else []


def find_projection(select: Scope, name: str) -> exp.Expr | None:
    """The projection called `name`, without its alias; None if there is none."""
    for item in select.expression.expressions:
        if item.alias_or_name.lower() == name.lower():
            found: exp.Expr = item.unalias()
            return found
    return None


def split_conditions(condition: exp.Expr) -> list[exp.Expr]:
    """The parts of a condition, as they are written, that all have to hold."""
    if isinstance(condition, exp.Paren):
        return split_conditions(condition.this)
    if isinstance(condition, exp.And):
        return [*split_conditions(condition.this), *split_conditions(condition.expression)]
    return [condition]


def find_column_source(scope: Scope, column: exp.Column) -> exp.Expr | Scope | None:
    """Where a column comes from: a table, a scope, or None."""
    if column.table:
        return scope.sources.get(column.table)
    candidates = list(scope.selected_sources.values())
    return candidates[0][1] if len(candidates) == 1 else None


def find_origins(scope: Scope, node: exp.Expr, depth: int = 0) -> set[tuple[str, str]]:
    """The (table, column) pairs, in lower case, that a node's value is computed from.

    The table is "" where it is not known. CTEs and subqueries are followed to the tables below.
    """
    found: set[tuple[str, str]] = set()
    for column in node.find_all(exp.Column):
        found |= _find_origin(scope, column, depth)
    return found


def _find_origin(scope: Scope, column: exp.Column, depth: int) -> set[tuple[str, str]]:
    name = column.name.lower()
    source = find_column_source(scope, column)
    if isinstance(source, exp.Table):
        return {(table_name(source), name)}
    if isinstance(source, Scope) and depth < MAX_DEPTH:
        found: set[tuple[str, str]] = set()
        for branch in list_outer_scopes(source):
            item = find_projection(branch, name)
            if item is not None and branch is not scope:
                found |= find_origins(branch, item, depth + 1)
        return found or {("", name)}
    return {("", name)}


def table_name(table: exp.Table) -> str:
    """catalog.db.name in lower case, without quotes and alias."""
    return ".".join(part.name.lower() for part in table.parts)


def plain_name(fqn: str) -> str:
    """A model's name as `table_name` writes it."""
    return fqn.replace('"', "").replace("`", "").lower()


# Where in a query something stands, in words that a renamed alias or CTE leaves as they are.


def name_query_part(node: exp.Expr, query: ModelQuery) -> str:
    """Names the result column or the clause that contains a node of the query."""
    below, above = node, node.parent
    while above is not None and not isinstance(above, exp.Select):
        below, above = above, above.parent
    if above is None:
        return "the query"
    top = above.parent is None or any(
        above is scope.expression
        for root in (query.root, query.written_root)
        for scope in list_outer_scopes(root)
    )
    if below.arg_key == "expressions":
        return f"column {below.alias_or_name}" if top else "a column of a subquery"
    clause = str(below.arg_key).strip("_").upper()
    return clause if top else f"{clause} of a subquery"
