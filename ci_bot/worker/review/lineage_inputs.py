"""A plan's models as inputs of the column impact."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from ci_bot.protocol.plan import ChangeType, Finding
from ci_bot.protocol.review_inputs import ExecutionExample, ModelExecution
from ci_bot.protocol.review_report import HowChanged, Impact, IndirectModel
from ci_bot.protocol.rules import RULES
from ci_bot.worker.messages import MessageNames
from ci_bot.worker.planning import BuiltPlan, find_planned_change_type
from ci_bot.worker.review.query_definition import (
    OF_THE_RUN,
    list_deciding_columns,
    list_own_statements,
    list_parents_in_statements,
    read_definition_for_impact,
)
from ci_bot.worker.rules import SeedRows
from ci_bot.worker.sql import (
    MOST_INDIRECT,
    ChangedProject,
    LineageModel,
    ModelChange,
    compare_types,
    list_known_types,
    make_impact,
    plain_name,
)
from ci_bot.worker.sql_effects import do_statements_change_rows
from ci_bot.worker.sqlmesh_compat import is_seed_model

if TYPE_CHECKING:
    from sqlmesh.core.model import Model
    from sqlmesh.core.snapshot import Snapshot

# Changes of an edited model that its query does not show.


_SAME_DATA = frozenset({"FULL", "VIEW", "EMBEDDED"})  # other storage, the same content

_WITHOUT_DATA = (
    "partitioned_by", "clustered_by", "table_format", "storage_format", "physical_properties",
    "physical_schema", "physical_version", "virtual_environment_mode", "optimize_query",
    "stamp",  # it is built again on request
    "python_env", "jinja_macros", "columns_to_types_",
)  # fmt: skip


_OF_INTERVALS = {
    "lookback": "Its lookback changes.",
    "interval_unit": "Its interval changes.",
}

_DECIDING = {"gateway": "It runs on another gateway."}


def list_retyped_columns(
    before: Model, after: Model, seed_rows: SeedRows | None = None
) -> Iterator[tuple[str, HowChanged]]:
    """Lists columns that get another type, and a seed's columns that hold other values.

    Args:
        seed_rows: row differences of a seed; None if its former text is not known.
    """
    old, new = list_known_types(before) or {}, list_known_types(after) or {}
    for name, kind in old.items():
        if name in new and compare_types(kind, new[name]) is not None:
            yield name, "retyped"
    if seed_rows is not None:
        yield from ((name, "computed") for name in seed_rows.columns)
    elif is_seed_model(before) and is_seed_model(after):
        hashes = before.column_hashes, after.column_hashes
        yield from ((name, "computed") for name in _list_differing_seed_columns(*hashes))


def _list_differing_seed_columns(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    return [name.lower() for name in old if name in new and old[name] != new[name]]


def describe_change_beside_query(
    before: Model, after: Model, seed_rows: SeedRows | None = None
) -> str | None:
    """Describes a difference outside of the query that changes a model's data; None if none does.

    Args:
        seed_rows: row differences of a seed; None if its former text is not known.
    """
    kinds = {before.kind.name.value, after.kind.name.value}
    if (
        before.kind.data_hash_values != after.kind.data_hash_values
        and not kinds <= _SAME_DATA
        and not _are_seeds_read_alike(before, after)
    ):
        return "Its kind changes."
    if seed_rows is not None:
        return seed_rows.rows_description
    if is_seed_model(before) and is_seed_model(after):
        same = before.column_hashes.items() & after.column_hashes.items()
        return None if same or before.column_hashes == after.column_hashes else "Its rows change."
    deciding = _DECIDING if kinds <= _SAME_DATA else _DECIDING | _OF_INTERVALS
    found = next(
        (
            sentence
            for name, sentence in deciding.items()
            if _differs_in_reviewed_field(before, after, name)
        ),
        None,
    )
    statements = list_own_statements(before), list_own_statements(after)
    if found is None and do_statements_change_rows(*statements, after.dialect):
        found = "Statements before or after its query change, and they can change rows or values."
    if found is None and _hides_code_change(before, after):
        found = "A macro changes that computes with the times of a run."
    seen = statements[0] != statements[1] or any(
        _differs_in_reviewed_field(before, after, name)
        for name in ("query_", "kind", *_OF_INTERVALS, *_WITHOUT_DATA)
    )
    if found is None and not seen and not before.kind.is_external:
        found = "Something besides its query changes."
    return found


def _are_seeds_read_alike(before: Model, after: Model) -> bool:
    """Whether SQLMesh reads the same values from two seeds, whatever their settings are."""
    return (
        is_seed_model(before)
        and is_seed_model(after)
        and bool(before.column_hashes == after.column_hashes)
    )


def _differs_in_reviewed_field(before: Model, after: Model, name: str) -> bool:
    return bool(getattr(before, name, None) != getattr(after, name, None))


def _hides_code_change(before: Model, after: Model) -> bool:
    """Whether code differs, and a rendering at load time may not show its effect."""
    old, new = (dict(node.python_env or {}) for node in (before, after))
    texts = [
        str(getattr(env.get(name), "payload", ""))
        for name in {*old, *new}
        if old.get(name) != new.get(name)
        for env in (old, new)
    ]
    definitions = [
        [item.sql() for item in getattr(node, "macro_definitions", ())] for node in (before, after)
    ]
    if definitions[0] != definitions[1]:
        texts += [*definitions[0], *definitions[1]]
    jinja = [_list_jinja_code(node) for node in (before, after)]
    if jinja[0] != jinja[1] and any(map(_is_jinja_of_the_run, (before, after))):
        return True
    return any(OF_THE_RUN.search(text) for text in texts)


def _list_jinja_code(node: Model) -> tuple[Any, ...]:
    """Lists the macros of a model's Jinja and the values that they can read.

    Left out are dbt's facts about the model itself (`model`: path, checksum, time of parsing),
    which differ with every edit, and a registry's parsing cache, which `==` would compare.
    """
    registry = getattr(node, "jinja_macros", None)
    if registry is None:
        return ()
    read = {name: value for name, value in registry.global_objs.items() if name != "model"}
    return registry.packages, registry.root_macros, read


def _is_jinja_of_the_run(node: Model) -> bool:
    definition = read_definition_for_impact(node)
    return definition.text is not None


_SAME_RESULT = RULES["same-result"].id


@dataclass(frozen=True)
class ReviewedModels:
    """The models of a plan, by fully qualified name.

    Attributes:
        after: all models of the head.
        before: the former definitions of the edited models. SQLMesh also calls a model direct if
            its star now expands to other columns; that model only follows its parents, and is left
            out.
        kinds: the change type of each model that differs.
        removed: the removed models.
        same_result: report names of models whose edit is proved to change no result.
        seed_rows: row differences of the seeds whose former text is known.
        executed: by report name, the columns in which an execution has shown a difference; None
            among them: the number of rows differs.
        disproved: by fully qualified name, the models in which the analysis misses a change, with
            the proof from a run of a reader.
    """

    after: Mapping[str, Model]
    before: Mapping[str, Model]
    kinds: Mapping[str, ChangeType]
    removed: Sequence[str] = ()
    same_result: frozenset[str] = frozenset()
    seed_rows: Mapping[str, SeedRows] = field(default_factory=dict)
    executed: Mapping[str, frozenset[str | None]] = field(default_factory=dict)
    disproved: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_plan(
        cls,
        planned: BuiltPlan,
        findings: Iterable[Finding],
        seed_rows: Mapping[str, SeedRows] | None = None,
        executions: Iterable[ModelExecution] = (),
    ) -> ReviewedModels:
        """Collects the changed models of a plan, with the rules' `findings` on them."""
        diff = planned.plan.context_diff
        after = {s.name: s.model for s in planned.plan_snapshots.values() if s.is_model}
        kinds = {
            s.name: find_planned_change_type(planned, s)
            for s in planned.changed_snapshots
            if s.is_model
        }
        return cls(
            after=after,
            before={
                name: old.model
                for name, kind in kinds.items()
                if kind == "direct"
                for new, old in [diff.modified_snapshots[name]]
                if old.is_model and _is_edited_in_review(new, old)
            },
            kinds=kinds,
            removed=[str(info.name) for info in diff.removed_snapshots.values()],
            same_result=frozenset(f.model for f in findings if f.model and f.rule == _SAME_RESULT),
            seed_rows=seed_rows or {},
            executed={
                one.model: _list_differences_in_example(one.example)
                for one in executions
                if one.example is not None
            },
        )


def _list_differences_in_example(example: ExecutionExample) -> frozenset[str | None]:
    before, after = (
        sum(getattr(pair, side) is not None for pair in example.outputs)
        for side in ("before", "after")
    )
    return frozenset((*example.differing, *([None] if before != after else [])))


def _is_edited_in_review(new: Snapshot, old: Snapshot) -> bool:
    return bool(new.node.data_hash != old.node.data_hash)


def make_column_impact(
    planned: BuiltPlan | None,
    names: MessageNames,
    findings: Iterable[Finding] = (),
    seed_rows: Mapping[str, SeedRows] | None = None,
    executions: Iterable[ModelExecution] = (),
    check_readers: Callable[[Iterable[str]], Mapping[str, str]] = lambda _readers: {},
) -> Impact:
    """Computes what depends on each column that the plan changes; empty without a plan.

    It never ends a review: if it cannot be computed, every indirect model is `unknown`.

    Args:
        findings: Findings of the rules on changes, which may prove that an edit changes no result.
        seed_rows: Row differences of the seeds whose former text is known.
        executions: Results of running changed models on generated rows.
        check_readers: Runs readers (by fully qualified name) together with the changed models that
            they read. Returns the changed models in which the analysis missed a change, each with
            the proof.
    """
    if planned is None:
        return Impact()
    changed = ReviewedModels.from_plan(planned, findings, seed_rows, executions)
    try:
        return follow_changes_to_readers(changed, names, check_readers)
    except Exception as error:  # the project's own code is rendered in here, and may raise anything
        why = f"The column impact could not be computed ({type(error).__name__})."
        indirect = sorted(name for name, kind in changed.kinds.items() if kind == "indirect")
        return Impact(
            indirect=[
                IndirectModel(model=names.short_name(name), reached="unknown", why=why)
                for name in indirect[:MOST_INDIRECT]
            ],
            more_indirect=max(len(indirect) - MOST_INDIRECT, 0),
        )


def follow_changes_to_readers(
    changed: ReviewedModels,
    names: MessageNames,
    check_readers: Callable[[Iterable[str]], Mapping[str, str]],
) -> Impact:
    """Computes the impact of changed models, corrected by running the readers that seem unreached.

    Args:
        check_readers: see `make_column_impact`.
    """
    impact = make_impact(read_changed_project(changed, names))
    unreached = {entry.model for entry in impact.indirect if entry.reached == "no"}
    indirect = sorted(name for name, kind in changed.kinds.items() if kind == "indirect")
    disproved = check_readers([n for n in indirect if names.short_name(n) in unreached])
    if not disproved:
        return impact
    return make_impact(read_changed_project(replace(changed, disproved=disproved), names))


def read_changed_project(changed: ReviewedModels, names: MessageNames) -> ChangedProject:
    """Reads the changed models and all models below them, parents first."""
    return _ReviewedLineageReader(changed, names).read_project()


class _TableColumns(Mapping[str, tuple[str, ...] | None]):
    """The columns of tables, computed on first use.

    A query has to be optimized to know them, and most models below a change read no such column.
    """

    def __init__(
        self, names: Mapping[str, str], columns: Callable[[str], tuple[str, ...] | None]
    ) -> None:
        self._names = names
        self._of = cache(columns)

    def __getitem__(self, table: str) -> tuple[str, ...] | None:
        return self._of(self._names[table])

    def __contains__(self, table: object) -> bool:
        return table in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class _ReviewedLineageReader:
    def __init__(self, changed: ReviewedModels, names: MessageNames) -> None:
        self._names = names
        self._nodes = changed.after
        self._before = changed.before
        self._kinds = changed.kinds
        self._removed = changed.removed
        self._same_result = changed.same_result
        self._seed_rows = changed.seed_rows
        self._executed = changed.executed
        self._disproved = changed.disproved
        self._readers: dict[str, list[str]] = {}
        # Sorted, because files load in any order, and the same plan gives the same report.
        for name, node in sorted(self._nodes.items()):
            for parent in node.depends_on:
                self._readers.setdefault(parent, []).append(name)

    def read_project(self) -> ChangedProject:
        changes = dict(self._iterate_changes())
        ordered = self._sort_models(self._list_below(changes))
        models = [
            LineageModel(plain_name(name), change="removed")
            for name in sorted(self._removed)
            if name in changes
        ]
        models += [self._read_model(name, changes.get(name)) for name in ordered]
        read = set(ordered)
        read |= {parent for name in ordered for parent in self._nodes[name].depends_on}
        shown = {plain_name(name): self._names.short_name(name) for name in (*read, *self._removed)}
        return ChangedProject(
            models=tuple(models),
            columns=_TableColumns({plain_name(name): name for name in read}, self._read_columns),
            shown=lambda name: shown.get(name, name),
        )

    def _iterate_changes(self) -> Iterator[tuple[str, ModelChange]]:
        for name, kind in self._kinds.items():
            if kind == "direct" and name in self._before:
                yield name, "direct"
            elif kind == "indirect":
                yield name, "indirect"
            elif kind == "added" and self._has_old_reader(name):
                yield name, "added"
        yield from ((name, "removed") for name in self._removed if self._has_old_reader(name))

    def _has_old_reader(self, name: str) -> bool:
        """Whether a model that was not edited in this change reads it."""
        return any(self._kinds.get(reader) == "indirect" for reader in self._readers.get(name, ()))

    def _list_below(self, changes: Iterable[str]) -> set[str]:
        found = {name for name in changes if name in self._nodes}
        pending = list(changes)
        while pending:
            for reader in self._readers.get(pending.pop(), ()):
                if reader not in found:
                    found.add(reader)
                    pending.append(reader)
        return found

    def _sort_models(self, wanted: set[str]) -> list[str]:
        missing = {name: self._nodes[name].depends_on & wanted for name in sorted(wanted)}
        ordered: list[str] = []
        ready = [name for name, parents in missing.items() if not parents]
        while ready:
            name = ready.pop()
            ordered.append(name)
            for reader in self._readers.get(name, ()):
                if reader in missing and name in missing[reader]:
                    missing[reader] = missing[reader] - {name}
                    if not missing[reader]:
                        ready.append(reader)
        return ordered

    def _read_model(self, name: str, change: ModelChange | None) -> LineageModel:
        node = self._nodes[name]
        before = self._before.get(name) if change == "direct" else None
        is_source = node.is_seed or node.kind.is_external
        rows = self._seed_rows.get(name)
        return LineageModel(
            name=plain_name(name),
            parents=tuple(sorted(plain_name(parent) for parent in node.depends_on)),
            change=change,
            after=None if is_source else partial(read_definition_for_impact, node),
            before=None
            if before is None or is_source
            else partial(read_definition_for_impact, before),
            columns_before=_list_declared_columns_for_lineage(before),
            columns_after=_list_declared_columns_for_lineage(node) if before is not None else None,
            changed={} if before is None else dict(list_retyped_columns(before, node, rows)),
            same_result=self._names.short_name(name) in self._same_result,
            executed=self._executed.get(self._names.short_name(name), frozenset()),
            disproved=self._disproved.get(name),
            beside_query=None
            if before is None
            else describe_change_beside_query(before, node, rows),
            deciding=list_deciding_columns(node),
            read_elsewhere=frozenset(list_parents_in_statements(node)),
            is_source=is_source,
            opaque="It is a Python model: what it reads is not known." if node.is_python else None,
        )

    def _read_columns(self, name: str) -> tuple[str, ...] | None:
        node = self._nodes.get(name)
        after = _list_declared_columns_for_lineage(node)
        if name not in self._before or after is None:
            return after
        before = _list_declared_columns_for_lineage(self._before[name])
        return None if before is None else tuple(dict.fromkeys((*before, *after)))


def _list_declared_columns_for_lineage(node: Model | None) -> tuple[str, ...] | None:
    types = list_known_types(node) if node is not None else None
    return tuple(types) if types else None
