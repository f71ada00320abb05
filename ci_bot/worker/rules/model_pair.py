"""One model before and after the change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from sqlglot import exp

from ci_bot.protocol.plan import ColumnChange
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.sql import (
    AuditPromises,
    KeyInterner,
    ModelQueries,
    ModelQuery,
    NormalForm,
    QueryMeaning,
    inline_model_queries,
    is_spark_dialect,
    list_column_changes,
    normalize_query,
    plain_name,
    read_audit_promises,
    table_name,
)
from ci_bot.worker.sqlmesh_compat import is_sql_model, share_query_that_sqlmesh_rendered

if TYPE_CHECKING:
    from sqlmesh.core.model import Model


TreeOfQuery = TypeVar("TreeOfQuery", bound="exp.Expr")


@dataclass(frozen=True)
class ModelPair:
    """A changed model with both definitions.

    Attributes:
        readers: the models of the head that read it directly.
        renamed: only its name or catalog changed.
        new_names: new names of the renamed models, by their old names.
        removed, added: models that this change removes or adds, and whose rows are always the rows
            of their query.
        engines: the engine of each gateway, by its name in lower case; "" is the default one.
    """

    before: Model
    after: Model
    readers: tuple[Model, ...]
    queries: ModelQueries
    renamed: bool = False
    new_names: Mapping[str, str] = field(default_factory=dict)
    removed: Mapping[str, Model] = field(default_factory=dict)
    added: Mapping[str, Model] = field(default_factory=dict)
    engines: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def is_on_spark(self) -> bool:
        """Whether Spark runs both queries as they are written, as far as the project shows it."""
        models = self.before, self.after
        engines = [self.engines.get((model.gateway or "").lower(), "spark") for model in models]
        return all(map(is_spark_dialect, (*engines, *(str(model.dialect) for model in models))))

    def normalize_both(self, old: exp.Expr, new: exp.Expr) -> tuple[NormalForm, NormalForm] | None:
        """Returns the normal forms of a tree of each side; None if one has none."""
        keys = KeyInterner()
        was = normalize_query(old, keys, self.new_names, on_spark=self.is_on_spark)
        now = normalize_query(new, keys, on_spark=self.is_on_spark)
        return (was, now) if was is not None and now is not None else None

    @cached_property
    def query_before(self) -> ModelQuery | None:
        return self.queries.query_of(self.before)

    @cached_property
    def query_after(self) -> ModelQuery | None:
        return self.queries.query_of(self.after)

    @cached_property
    def has_same_text(self) -> bool:
        """Whether both queries are rendered as the same text; most changes are metadata only."""
        old, new = self.both_trees
        if old is None or new is None:
            return False
        if self.has_same_query and self.before.python_env == self.after.python_env:
            return bool(old == new)
        return self.is_one_text(old, new)

    @cached_property
    def both_trees(self) -> tuple[exp.Query | None, exp.Query | None]:
        """Both queries, rendered in the same way; None for a query that cannot be rendered.

        If the columns of a table became known or unknown (an external table is now a model),
        SQLMesh qualifies columns and expands stars on one side only. Then both sides stay as
        written. If SQLMesh's cache has one rendered query for two texts, both are rendered as in a
        run.
        """
        old, new = self.query_before, self.query_after
        if old is None or new is None:
            return None, None
        if share_query_that_sqlmesh_rendered(self.before, self.after):
            return old.rendered_apart, new.rendered_apart
        if old.knows_its_tables != new.knows_its_tables:
            return old.rendered_as_written, new.rendered_as_written
        return old.rendered_query, new.rendered_query

    def is_one_text(self, old: exp.Expr, new: exp.Expr) -> bool:
        """Whether the engine gets the same text for two trees.

        The trees alone do not decide. The parser calls two trees equal although their texts differ
        in case, for example in a key of JSON. And it has two types for one type of the engine.
        """
        dialect = self.before.dialect
        return self.after.dialect == dialect and bool(
            _render_query_of_pair(old, dialect) == _render_query_of_pair(new, dialect)
        )

    @cached_property
    def both_forms(self) -> tuple[NormalForm, NormalForm] | None:
        """Both queries in normal form; None if one has none."""
        old, new = self.both_trees
        if old is None or new is None:
            return None
        return self.normalize_both(old, new)

    @cached_property
    def is_proved_same(self) -> bool:
        """Whether a proof shows that both queries, as the load renders them, give the same rows."""
        if self.both_forms is None:
            return False
        was, now = self.both_forms
        return was.proves_same(now, one_text=self.has_same_text)

    @cached_property
    def _forms_in_full(self) -> tuple[NormalForm, NormalForm] | None:
        """Both forms, after the queries of added or removed models replace these models.

        If a part of a query moves into its own view, the result stays the same. None if neither
        side reads such a model.
        """
        old, new = self.both_trees
        if old is None or new is None:
            return None
        before = inline_model_queries(old, self.removed)
        after = inline_model_queries(new, self.added)
        if before is old and after is new:
            return None
        return self.normalize_both(before, after)

    @cached_property
    def both_meanings(self) -> tuple[QueryMeaning, QueryMeaning] | None:
        """Both meanings if they may differ; None if a proof shows that they do not.

        In that case no filter, join or group has changed, even if it is written in another way.
        None also if a query has no normal form.
        """
        if self.has_same_text or self.both_forms is None or self.is_proved_same:
            return None
        was, now = self._forms_in_full or self.both_forms
        if was.proves_same(now):
            return None
        return QueryMeaning(was, self.before.dialect), QueryMeaning(now, self.after.dialect)

    @cached_property
    def both_promises(self) -> tuple[AuditPromises, AuditPromises]:
        return read_audit_promises(self.before), read_audit_promises(self.after)

    @cached_property
    def column_changes(self) -> list[ColumnChange]:
        return list_column_changes(self.before, self.after, self.readers, queries=self.queries)

    @property
    def has_inferred_types(self) -> bool:
        """Whether it is a seed that declares no columns, so SQLMesh takes types from its values."""
        return bool(self.after.kind.is_seed) and not getattr(self.after, "columns_to_types_", None)

    @cached_property
    def has_same_query(self) -> bool:
        """Whether the text of the query is the same on both sides."""
        old = getattr(self.before, "query_", None)
        new = getattr(self.after, "query_", None)
        return old is not None and new is not None and old.sql == new.sql


def _render_query_of_pair(tree: exp.Expr, dialect: str) -> str:
    """Renders the text for the engine, without the word INNER: a plain join means the same."""
    if any(join.kind == "INNER" for join in tree.find_all(exp.Join)):
        tree = tree.copy()
        for join in tree.find_all(exp.Join):
            if join.kind == "INNER":
                join.set("kind", None)
    return tree.sql(dialect=dialect, comments=False)


def iterate_pairs(inputs: RuleInputs, queries: ModelQueries) -> Iterator[ModelPair]:
    """Yields the pairs of models that differ on both sides, and of models that got another name."""
    same = list_renamed_models(inputs)
    new_names = {plain_name(old): plain_name(new) for old, new in same}
    renames = {name for pair in same for name in pair}
    removed = _list_whole_models(inputs.before, set(list_gone_models(inputs)) - renames)
    added = _list_whole_models(inputs.after, set(list_new_models(inputs)) - renames)
    gateways = inputs.config_after.gateways if inputs.config_after is not None else {}
    engines = {name: gateway.engine for name, gateway in gateways.items()}
    for name, after in inputs.after.items():
        before = inputs.before.get(name)
        if (
            before is not None
            and name not in inputs.from_base
            and _is_model_different(before, after)
        ):
            readers = _list_readers_of_pair(inputs, name)
            yield ModelPair(
                before,
                after,
                readers,
                queries,
                new_names=new_names,
                removed=removed,
                added=added,
                engines=engines,
            )
    for old, new in [*same, *list_moved_models(inputs, same)]:
        yield ModelPair(
            inputs.before[old],
            inputs.after[new],
            _list_readers_of_pair(inputs, new),
            queries,
            renamed=True,
            new_names=new_names,
            engines=engines,
        )


def _list_whole_models(models: Mapping[str, Model], wanted: Iterable[str]) -> dict[str, Model]:
    """Lists the models whose rows are always the rows of their query, by name."""
    return {
        name: models[name]
        for name in wanted
        if models[name].is_sql and (models[name].kind.is_view or models[name].kind.is_full)
    }


def _list_readers_of_pair(inputs: RuleInputs, name: str) -> tuple[Model, ...]:
    return tuple(
        inputs.after[reader]
        for reader in sorted(inputs.readers.get(name, ()))
        if reader in inputs.after
    )


def _is_model_different(before: Model, after: Model) -> bool:
    return before is not after and bool(
        before.data_hash != after.data_hash
        or before.metadata_hash != after.metadata_hash
        # No hash contains the ignored rules.
        or before.ignored_rules != after.ignored_rules
        or _changes_dependencies(before, after)
    )


def _changes_dependencies(before: Model, after: Model) -> bool:
    """Whether a written list of dependencies changes; all other dependencies are in the query."""
    written = before.depends_on_ is not None or after.depends_on_ is not None
    return written and bool(before.depends_on != after.depends_on)


def list_gone_models(inputs: RuleInputs) -> list[str]:
    """Lists the models of prod that the head does not have; none if the head does not load."""
    if not inputs.loaded:
        return []
    return sorted(set(inputs.before) - set(inputs.after) - inputs.from_base)


def list_new_models(inputs: RuleInputs) -> list[str]:
    """Lists the models that prod does not have."""
    return sorted(set(inputs.after) - set(inputs.before) - inputs.from_base)


def list_renamed_models(inputs: RuleInputs) -> list[tuple[str, str]]:
    """Lists (old, new) names of models that only got another name, one pair for each model.

    Their queries may read each other by their new names.
    """
    old_names, new_names = list_gone_models(inputs), list_new_models(inputs)
    if not old_names or not new_names:
        return []
    found = _pair_by_equal_text(inputs, old_names, new_names, {})
    while True:
        again = _pair_by_equal_text(
            inputs, old_names, new_names, {plain_name(old): plain_name(new) for old, new in found}
        )
        if len(again) <= len(found):
            return found
        found = again


def _pair_by_equal_text(
    inputs: RuleInputs,
    old_names: Iterable[str],
    new_names: Iterable[str],
    known: Mapping[str, str],
) -> list[tuple[str, str]]:
    """Pairs models whose texts are the same after tables get their `known` names.

    If several models have one text, those with the same schema and table are paired.
    """
    waiting: dict[str, list[str]] = {}
    for new in new_names:
        if text := _render_model_text(inputs.after[new], {}):
            waiting.setdefault(text, []).append(new)
    found: list[tuple[str, str]] = []
    texts = {old: _render_model_text(inputs.before[old], known) for old in old_names}
    for kept in (True, False):
        for old in list(texts):
            twins = waiting.get(texts[old], [])
            twin = next(
                (new for new in twins if not kept or _cut_catalog(new) == _cut_catalog(old)), None
            )
            if twin is not None:
                twins.remove(twin)
                found.append((old, twin))
                del texts[old]
    return found


def list_moved_models(inputs: RuleInputs, same: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Lists (old, new) names of models with one schema and table in two catalogs, and other texts.

    They are compared, although nothing shows that they are the same model. If several models have
    one schema and table, the pairs are unknown, and none is listed.
    """
    taken = {name for pair in same for name in pair}
    tails = [
        Counter(_cut_catalog(name) for name in names if name not in taken)
        for names in (list_gone_models(inputs), list_new_models(inputs))
    ]
    by_tail = {_cut_catalog(name): name for name in list_new_models(inputs) if name not in taken}
    return [
        (old, by_tail[tail])
        for old in list_gone_models(inputs)
        if old not in taken
        and (tail := _cut_catalog(old))
        and all(side[tail] == 1 for side in tails)
    ]


def _cut_catalog(name: str) -> str:
    """Cuts the catalog off a name and returns schema and table; empty if it has no catalog."""
    catalog, _, rest = plain_name(name).partition(".")
    return rest if catalog and "." in rest else ""


def _render_model_text(model: Model, known: Mapping[str, str]) -> str:
    """Renders a model's definition without its name, with tables by their `known` names."""
    if model.kind.is_external or model.kind.is_seed:
        columns = sorted(
            f"{name} {kind.sql()}" for name, kind in (model.columns_to_types or {}).items()
        )
        content = getattr(model, "column_hashes", None) or {}
        return f"{model.kind.name} {columns} {sorted(content.items())}" if columns else ""
    if is_sql_model(model):
        if getattr(model, "query_", None) is None:
            return ""
        query = rename_tables(model.query, known)
        # The state may store a query with another layout than the file.
        return str(query.sql(dialect=model.dialect, comments=False))
    if model.is_python:
        return "\n".join(
            item.payload for item in model.python_env.values() if "def " in item.payload
        )
    return ""


def rename_tables(query: TreeOfQuery, names: Mapping[str, str]) -> TreeOfQuery:
    """Gives tables of a query their new `names`; returns the query itself if there are no names."""
    if not names:
        return query
    query = query.copy()
    for table in list(query.find_all(exp.Table)):
        if (name := names.get(table_name(table))) is not None:
            table.replace(_rename_table_of_pair(table, name))
    return query


def _rename_table_of_pair(table: exp.Table, name: str) -> exp.Table:
    other = table.copy()
    for part, value in zip(("catalog", "db", "this"), name.split("."), strict=False):
        other.set(part, exp.to_identifier(value))
    return other


def list_touched_models(
    inputs: RuleInputs, changed: Iterable[ModelPair]
) -> list[tuple[Model | None, Model]]:
    """Lists (before or None, after) of every model that the model rules check."""
    pairs_found = [(pair.before, pair.after) for pair in changed]
    known = {after.fqn for _, after in pairs_found}
    return pairs_found + [
        (None, inputs.after[name]) for name in list_new_models(inputs) if name not in known
    ]
