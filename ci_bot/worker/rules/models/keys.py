"""Keys: the columns that identify a row, and the audits that prove it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING

from sqlglot import exp

from ci_bot.protocol.rules import find_rule, quote_names
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.models.declared_keys import (
    KeyContradictions,
    find_multiplying_join,
    list_grains,
    may_model_deduplicate,
)
from ci_bot.worker.rules.models.linter_rule import (
    ModelRule,
    ProjectView,
    is_computed_table,
    on_model,
)
from ci_bot.worker.rules.observation import NOT_RETURNED, RuleObservation, list_new_observations
from ci_bot.worker.rules.registry import on_project
from ci_bot.worker.sql import (
    NEVER,
    UNKNOWN,
    AuditFault,
    find_null_default,
    find_null_reason,
    list_audit_faults,
    list_column_names,
    list_key_columns,
    list_standalone_audit_faults,
    read_audit_promises,
)
from ci_bot.worker.sqlmesh_compat import is_scd_type_2

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

    from ci_bot.worker.sql import AuditPromises

_AUDIT_CAN_RUN = "the columns that the audit reads exist, and it gets each argument that it needs"
WIDE_KEY = 5
# In these dialects SQLMesh deletes and inserts instead, and compares keys as one text without
# NULLs.
_WITHOUT_MERGE = frozenset({"duckdb", "mysql"})
_POOR_KEY_TYPES = frozenset({"DOUBLE", "FLOAT", "BINARY", "VARBINARY", "TIMESTAMP", "TIMESTAMPTZ"})


def _render_key_columns(columns: Iterable[str]) -> str:
    return f"({', '.join(sorted(columns))})"


_KEEPS_ANY = "of several rows with one key the merge keeps any, or fails."


@on_model
class UniqueKeyNoAudit(ModelRule):
    """A merge on a key that is not unique keeps an arbitrary row."""

    spec = find_rule("unique-key-no-audit")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        if is_scd_type_2(model.kind):
            yield from self._observe_history(model)
        if not model.kind.is_incremental_by_unique_key:
            return
        key = frozenset(list_column_names(model.unique_key))
        if key and not read_audit_promises(model).makes_unique(key):
            query = self.query_of(model)
            multiplied = find_multiplying_join(query, key, self.project.by_table)
            contradiction = self._key_contradictions.describe_source(model, key)
            hinted = may_model_deduplicate(query) or (
                multiplied is None
                and contradiction is None
                and any(grain <= key for grain in list_grains(model))
            )
            yield self.make_observation(
                model,
                f"Rows are merged on {quote_names(key)}, and no audit says that they are unique"
                + (
                    "."
                    if hinted
                    else f", and the join of `{multiplied}` may give several rows with one key: "
                    "the merge keeps any of them, or fails."
                    if multiplied is not None
                    else f", and {contradiction}: {_KEEPS_ANY}"
                    if contradiction is not None
                    else f", nor does the query make one row of each, nor a grain: {_KEEPS_ANY}"
                ),
                "an audit unique_values or unique_combination_of_columns covers the key",
                severity="medium" if hinted else None,
                subject=[_render_key_columns(key)],
                anchors=("unique_key",),
            )

    @cached_property
    def _key_contradictions(self) -> KeyContradictions:
        return KeyContradictions(self.project.by_table, self.project.queries)

    def _observe_history(self, model: Model) -> Iterator[RuleObservation]:
        """Observes a history whose source has several rows of a key.

        These rows close each other in each run.
        """
        key = frozenset(list_column_names(model.unique_key))
        contradiction = self._key_contradictions.describe_join(
            model, key
        ) or self._key_contradictions.describe_source(model, key)
        if contradiction is not None:
            yield self.make_observation(
                model,
                f"Versions are kept for each {quote_names(key)}, and {contradiction}: the rows of "
                "one key close each other in each run.",
                "the query gives one row for each key",
                subject=[_render_key_columns(key)],
                anchors=("unique_key",),
            )


@on_model
class MergeKeyNull(ModelRule):
    """NULL equals nothing, so a row with a NULL in its key is never found again."""

    spec = find_rule("merge-key-null")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        kind = model.kind
        merges = kind.is_incremental_by_unique_key and model.dialect not in _WITHOUT_MERGE
        if not (merges or kind.is_scd_type_2):
            return
        # A computed part, such as COALESCE(x, ''), has a value on purpose.
        bare = [item for item in model.unique_key if isinstance(item, exp.Column | exp.Tuple)]
        reasons = {
            column: reason
            for column in list_column_names(bare)
            if (reason := find_null_reason(model, column, self.project)) not in {NEVER, UNKNOWN}
        }
        for column, reason in reasons.items():
            yield self.make_observation(
                model,
                f"`{column}` is a part of the key and can be NULL: {reason}. NULL equals nothing, "
                "so such a row is not found again, and each run stores it once more.",
                "COALESCE gives the part a value, or a NOT_NULL audit without a condition stops "
                "the run",
                subject=[column],
                anchors=(column, "unique_key"),
            )
        yield from self._observe_shared_key(model)

    def _observe_shared_key(self, model: Model) -> Iterator[RuleObservation]:
        """Observes rows without a key that all get the same key.

        No other part of the key distinguishes them.
        """
        parts = [
            part
            for item in model.unique_key
            for part in (item.expressions if isinstance(item, exp.Tuple) else [item])
        ]
        if may_model_deduplicate(self.query_of(model)):
            return
        defaults = [find_null_default(model, part, self.project) for part in parts]
        given = [default for default in defaults if default is not None]
        if not given or len(given) < len(defaults):
            return
        reasons = list(dict.fromkeys(default.reason for default in given if default.reason))
        constants = quote_names(dict.fromkeys(default.constant for default in given))
        yield self.make_observation(
            model,
            f"All rows without a key get {constants} as their key"
            + (f" ({'; '.join(reasons)})" if reasons else "")
            + f": {_KEEPS_ANY}",
            "a filter leaves these rows out, or the key has a part that tells them apart",
            severity=None if reasons else "medium",
            subject=[f"constant {_render_key_columns(list_column_names(parts))}"],
            anchors=("unique_key",),
        )


@on_model
class HighCardinalityKey(ModelRule):
    """A merge compares keys; some are slow to compare or never equal."""

    spec = find_rule("high-cardinality-key")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        if not model.kind.is_incremental_by_unique_key:
            return
        if model.partitioned_by or model.clustered_by:
            return
        key = list_column_names(model.unique_key)
        types = model.columns_to_types or {}
        poor = [c for c in key if c in types and types[c].this.value in _POOR_KEY_TYPES]
        made = [
            item.sql(dialect=model.dialect)
            for item in model.unique_key
            if not isinstance(item, exp.Column) and not isinstance(item, exp.Tuple)
        ]
        if poor or made or len(key) >= WIDE_KEY:
            why = (
                f"{quote_names(poor)} have types of too many values"
                if poor
                else f"{quote_names(made)} is computed for every comparison"
                if made
                else f"it has {len(key)} columns"
            )
            yield self.make_observation(
                model,
                f"The merge key is costly: {why}, and the table is neither partitioned nor "
                "clustered.",
                "the key is narrower, or the table is partitioned or clustered by a part of it",
                subject=[_render_key_columns(key)],
                anchors=("unique_key",),
            )


@on_model
class MissingGrain(ModelRule):
    """A data diff needs a key to compare two versions of a table."""

    spec = find_rule("missing-grain")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        if model.kind.is_embedded or model.kind.is_external or model.kind.is_symbolic:
            return
        # The key of a merge also serves as a grain.
        if not list_key_columns(model):
            yield self.make_observation(
                model,
                "No grain is declared, so versions of this table cannot be compared row by row.",
                "the model names its `grain`",
                severity="info" if model.kind.is_view else None,
            )


@on_model
class MissingKeyAudit(ModelRule):
    """Without an audit nobody knows whether a key is unique."""

    spec = find_rule("missing-key-audit")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        if model.kind.is_symbolic:
            return
        promises = read_audit_promises(model)
        grains = list_grains(model)
        for grain in grains:
            yield from self._observe_contradiction(model, grain, promises)
        if not is_computed_table(model):
            return
        if not grains:
            if not (promises.not_null or promises.unique or promises.other):
                yield self.make_observation(
                    model,
                    "The table has no audit at all: duplicates and missing keys pass unseen.",
                    "not_null and unique_values (or similar audits) watch the key",
                )
            return
        for grain in grains:
            if not promises.makes_unique(grain) and not (grain & promises.not_null.keys()):
                yield self.make_observation(
                    model,
                    f"No audit watches the grain {quote_names(grain)}.",
                    "not_null and unique_values (or similar audits) watch the grain",
                    subject=[_render_key_columns(grain)],
                    anchors=("grain", "grains"),
                )

    def _observe_contradiction(
        self, model: Model, grain: frozenset[str], promises: AuditPromises
    ) -> Iterator[RuleObservation]:
        contradictions = KeyContradictions(self.project.by_table, self.project.queries)
        if promises.makes_unique(grain):
            return
        why = contradictions.describe_join(model, grain) or contradictions.describe_groups(
            model, grain
        )
        if why is None:
            return
        yield self.make_observation(
            model,
            f"The grain is {quote_names(grain)}, but {why}: a value of the grain may be there "
            "several times, and no audit finds it.",
            "the grain is what the query gives one row for, or an audit watches it",
            severity="high",
            subject=[f"rows beside {_render_key_columns(grain)}"],
            anchors=("JOIN", "GROUP BY", "grain"),
        )


@on_model
class MissingKeyColumn(ModelRule):
    """Audits, keys and partitions that name a column which the query does not return."""

    spec = find_rule("missing-key-column")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        types = model.columns_to_types
        if not types or "*" in types or model.kind.is_external or model.kind.is_seed:
            return
        known = {name.lower() for name in types}
        yield from self._check_audits(model)
        uses: list[tuple[str, set[str]]] = [
            ("unique_key", set(list_column_names(model.unique_key))),
            ("grain", {c for grain in list_grains(model) for c in grain}),
        ]
        if model.time_column:
            uses.append(("time_column", {model.time_column.column.name.lower()}))
        for where, columns in uses:
            if gone := sorted(columns - known):
                yield self.make_observation(
                    model,
                    partial(_describe_unreturned_columns, where),
                    "the column is returned, or no longer named",
                    subject=[f"{where} {column}" for column in gone],
                    # A grain only informs readers; SQLMesh uses the others in each run.
                    severity="medium" if where == "grain" else None,
                    anchors=(*gone, where),
                )

    def _check_audits(self, model: Model) -> Iterator[RuleObservation]:
        called = self.project.name_of_table
        by_audit: dict[str, list[AuditFault]] = {}
        for fault in list_audit_faults(model, self.project.columns_of):
            by_audit.setdefault(fault.audit.name, []).append(fault)
        for name, faults in by_audit.items():
            by_subject = {_make_subject_of_audit_fault(fault, called): fault for fault in faults}
            yield RuleObservation(
                self.spec,
                partial(_describe_failing_audit, called, by_subject),
                _AUDIT_CAN_RUN,
                model=model,
                anchors=(*chain.from_iterable(map(_list_anchors, faults)), name),
                subject=tuple(by_subject),
                written_in=faults[0].audit if faults[0].is_own else None,
            )


def _make_subject_of_audit_fault(fault: AuditFault, called: Callable[[str], str]) -> str:
    what = f"argument {fault.argument}" if fault.argument else fault.column
    table = called(fault.table) if fault.table else None
    return " ".join(filter(None, ("audits", fault.audit.name, table, what)))


def _list_anchors(fault: AuditFault) -> tuple[str, ...]:
    """Lists spellings of the missing name to find its line: also a column after its table."""
    if fault.column is None:
        return (f"@{fault.argument}",)
    return fault.column, f".{fault.column}"


def _describe_failing_audit(
    called: Callable[[str], str], faults: Mapping[str, AuditFault], subjects: Sequence[str]
) -> str:
    """Describes a failing audit of a model."""
    named = [faults[subject] for subject in subjects]
    lacks = _describe_missing_parts(called, named, NOT_RETURNED)
    return f"The audit `{named[0].audit.name}` {lacks}: it fails each time that the model is built."


def _describe_failing_standalone_audit(
    called: Callable[[str], str], faults: Mapping[str, AuditFault], subjects: Sequence[str]
) -> str:
    """Describes a failing audit that belongs to no model."""
    named = [faults[subject] for subject in subjects]
    lacks = _describe_missing_parts(called, named, "which no model that it reads has")
    return f"The standalone audit `{named[0].audit.name}` {lacks}: it fails each time that it runs."


def _describe_missing_parts(
    called: Callable[[str], str], faults: Sequence[AuditFault], of_no_table: str
) -> str:
    read = {
        fault.table: quote_names(f.column for f in faults if f.column and f.table == fault.table)
        for fault in faults
        if fault.column
    }
    parts = [
        f"reads {columns}, "
        + (of_no_table if table is None else f"which `{called(table)}` does not have")
        for table, columns in read.items()
    ]
    missing = [fault.argument for fault in faults if fault.argument]
    if missing:
        parts.append(f"is not given {quote_names(missing)}")
    return ", and ".join(parts)


@on_project(MissingKeyColumn.spec)
def check_standalone_audits(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Checks audits that belong to no model if the change touches them or their models."""
    changed = (inputs.added | inputs.direct | inputs.indirect | inputs.metadata) - inputs.from_base
    files = inputs.changed_files
    now = ProjectView(inputs.after, names=inputs.names)
    then = ProjectView(inputs.before, names=inputs.names)
    for name, audit in inputs.standalone_after.items():
        faults = list_standalone_audit_faults(audit, now.columns_of)
        if not faults or not (
            files is None or inputs.find_path(audit) in files or audit.depends_on & changed
        ):
            continue
        before = inputs.standalone_before.get(name)
        old = list_standalone_audit_faults(before, then.columns_of) if before is not None else []
        yield from list_new_observations(
            _observe_standalone_faults(old, then), _observe_standalone_faults(faults, now)
        )


def _observe_standalone_faults(
    faults: Sequence[AuditFault], project: ProjectView
) -> Iterator[RuleObservation]:
    by_subject = {
        _make_subject_of_audit_fault(fault, project.name_of_table): fault for fault in faults
    }
    if by_subject:
        yield RuleObservation(
            MissingKeyColumn.spec,
            partial(_describe_failing_standalone_audit, project.name_of_table, by_subject),
            _AUDIT_CAN_RUN,
            anchors=(
                *chain.from_iterable(map(_list_anchors, faults)),
                faults[0].audit.name,
            ),
            subject=tuple(by_subject),
            written_in=faults[0].audit,
        )


def _describe_unreturned_columns(where: str, subjects: Sequence[str]) -> str:
    columns = [subject.removeprefix(f"{where} ") for subject in subjects]
    return f"`{where}` names {quote_names(columns)}, {NOT_RETURNED}."
