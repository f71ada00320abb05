"""Which existing rows will have other values, and which models keep their history."""

from __future__ import annotations

from dataclasses import dataclass

from ci_bot.protocol.plan import COMPUTED_WHOLE, Change
from ci_bot.protocol.review_report import (
    ChangedPart,
    ChangedRows,
    Impact,
    PastNumbers,
    ReachedModel,
    Report,
    ReviewFacts,
)

_UP_TO_THE_MATERIALIZATION = (
    "what prod's next run does with old rows is up to the custom materialization, and is not known"
)

_BY_PARTITION = (
    "prod's next runs write each partition that they load again, with the old rows in it, and "
    "other partitions stay"
)
_CLOSED = (
    "; with `invalidate_hard_deletes` a key that the query no longer gives is closed, too, and "
    "closed rows stay"
)
# What prod's next runs do with rows that a forward-only change leaves in its table, for kinds whose
# old rows can change. (`insert` of the strategies in `sqlmesh.core.snapshot.evaluator`)
_OLD_ROWS_CHANGE = {
    "INCREMENTAL_BY_UNIQUE_KEY": "prod's next runs merge by key: an old row whose key is loaded "
    "again gets the new values (or what `when_matched` says), and other rows stay",
    "INCREMENTAL_BY_PARTITION": _BY_PARTITION,
    "SCD_TYPE_2": "prod's next run compares all that the query gives with the open rows: a key "
    f"with a later update time gets a new row and its old one is closed{_CLOSED}",
    "SCD_TYPE_2_BY_COLUMN": "prod's next run compares all that the query gives with the open "
    f"rows: where a checked column differs, the old row is closed and a new one is added{_CLOSED}",
    "CUSTOM": _UP_TO_THE_MATERIALIZATION,
    "DBT_CUSTOM": _UP_TO_THE_MATERIALIZATION,
    "MANAGED": "the engine keeps this table up to date, and what it does with old rows is not "
    "known",
}
_OLD_ROWS_CHANGE["SCD_TYPE_2_BY_TIME"] = _OLD_ROWS_CHANGE["SCD_TYPE_2"]


def describe_old_rows_of_kind(kind: str, *, insert_overwrite: bool = False) -> str | None:
    """Describes what prod's next runs do with old rows after a forward-only change of this kind.

    Returns None if the old rows stay, and for kinds that hold none (`COMPUTED_WHOLE`). SQLMesh
    makes no seed and no external table forward-only.
    """
    return _BY_PARTITION if insert_overwrite else _OLD_ROWS_CHANGE.get(kind)


# Which models of a plan stay in prod's table: forward-only models, and those below a change.


def list_forward_only_models(report: Report | ReviewFacts) -> frozenset[str]:
    """Lists models that hold rows of their own and for which a merge builds nothing in `prod`.

    The kind decides whether these rows stay: see `list_history_keepers`.

    A forward-only reader of a breaking change has the category of its parent. Its preview shows
    that it is forward-only: a table of the environment that `prod` does not build again after the
    merge.
    """
    found = {change.model for change in report.changes if _is_forward_only(change)}
    plan = report.prod_plan
    if plan is not None:
        found -= {item.model for item in plan.next_run}
    if plan is None:
        return frozenset(found)
    again = {item.model for item in plan.full_backfill}
    previews = {
        item.model
        for item in report.backfill
        if item.preview
        and (item.action == "incremental" or describe_old_rows_of_kind(item.kind) is not None)
        and item.model not in again
    }
    return frozenset(found | previews)


def describe_old_rows(report: Report | ReviewFacts) -> dict[str, str]:
    """Describes what prod's next runs do with old rows of forward-only models.

    Returns a sentence for each of these models whose old rows can change.
    """
    kinds = {item.model: (item.kind, False) for item in report.backfill}
    kinds |= {change.model: (change.kind, change.insert_overwrite) for change in report.changes}
    found = {}
    for model in list_forward_only_models(report) & kinds.keys():
        kind, overwrites = kinds[model]
        sentence = describe_old_rows_of_kind(kind, insert_overwrite=overwrites)
        if sentence is not None:
            found[model] = sentence
    return found


def list_history_keepers(report: Report | ReviewFacts) -> frozenset[str]:
    """Lists forward-only models whose old rows stay as they are: only new intervals change."""
    return list_forward_only_models(report) - describe_old_rows(report).keys()


def _is_forward_only(change: Change) -> bool:
    kept = change.kind not in COMPUTED_WHOLE
    return kept and change.category == "forward_only" and change.change != "metadata"


# Which existing rows get other values: the judgement that decision and every report share.


_SAME_RESULT = "same-result"  # the worker's proof
_REBUILDS = ("breaking", "uncategorized")
# SQLMesh's categories of changes after which old rows are as they were.
_KEPT = ("non_breaking", "indirect_non_breaking", "forward_only", "metadata")
# The table stays, with its rows.
_REUSES = ("metadata", "indirect_non_breaking")


def read_past_numbers(report: Report) -> PastNumbers:
    """Returns the report's past numbers, or judges them if the report is older and has none."""
    return judge_past_numbers(report) if report.past_numbers is None else report.past_numbers


def judge_past_numbers(facts: ReviewFacts | Report) -> PastNumbers:
    """Judges what the pull request's own changes do to existing rows, without the base branch's.

    The names come from a document that was checked, so they are not checked again.
    """
    forward, kept = list_forward_only_models(facts), list_history_keepers(facts)
    own = [change for change in facts.changes if not change.from_base]
    findings = facts.findings if isinstance(facts, ReviewFacts) else facts.risks
    same = {finding.model for finding in findings if finding.rule == _SAME_RESULT}
    parts: dict[str, list[ChangedPart]] = {}
    for part in facts.impact.changed:
        parts.setdefault(part.model, []).append(part)
    changed = []
    for change in sorted(own, key=lambda change: change.model):
        if change.change != "direct" or change.model in kept | same:
            continue
        rows = _judge_rows_of_change(change, parts.get(change.model))
        if rows is None:
            continue
        if change.model in forward:
            # The data that prod's next runs load decides which old rows they reach.
            rows = rows.model_copy(update={"certain": False})
        changed.append(rows)
    lead = {item.model for item in changed}
    is_followed = lead <= parts.keys()
    taken = {one.reader.model: one for one in list_columns_taken_in(facts)}
    changed += [_judge_rows_of_reader(one) for one in taken.values()]
    changed.sort(key=lambda item: item.model)
    lead = {item.model for item in changed}
    read = [part for model in lead for part in parts.get(model, ()) if part.how != "added"]
    readers = {model.model for part in read for model in part.reached} - lead
    unknown = {item.model for item in facts.impact.indirect if item.reached == "unknown"}
    return PastNumbers.model_construct(
        changed=changed,
        readers=len(readers) + max((part.more_models for part in read), default=0),
        maybe_readers=len(unknown - readers - lead),
        readers_known=is_followed and not facts.impact.more_changed,
        rebuilt=sum(_is_rebuilt(change) for change in own if change.model not in forward | lead),
        keeps_history=sorted(kept),
    )


# The subject of a finding on these columns. No data diff clears it: only prod's next run computes
# those models again, so an apply has nothing to compare.
TAKEN_COLUMNS = "columns that models below take in"


@dataclass(frozen=True)
class TakenColumn:
    """A new column that a query below takes in without naming it.

    Attributes:
        model: the one that gets the column.
        reader: the model below, with its existing columns that depend on the new one.
    """

    model: str
    column: str
    reader: ReachedModel


def list_new_columns_of_impact(impact: Impact) -> set[str | None]:
    """Lists the names of all new columns; a reader that only passes one on has the same name."""
    return {part.column for part in impact.changed if part.how == "added"}


def list_columns_taken_in(facts: ReviewFacts | Report) -> list[TakenColumn]:
    """Lists new columns that change what models below gave before.

    For SQLMesh they are only an addition. But `SELECT DISTINCT *`, a set operation or `STRUCT(*)`
    take in all columns that there are, and a name without a table may now mean the new column. A
    star at the end of a query only passes the column on.
    """
    changes = {change.model: change for change in facts.changes if not change.from_base}
    new = list_new_columns_of_impact(facts.impact)
    # For these it is known already what happens to their old rows.
    others = {part.model for part in facts.impact.changed if part.how != "added"}
    others |= list_history_keepers(facts)
    found = []
    for part in facts.impact.changed:
        if part.how != "added" or part.column is None or part.model not in changes:
            continue
        for reader in part.reached:
            change = changes.get(reader.model)
            old = [column for column in reader.columns if column not in new]
            if change is None or change.category not in _KEPT or reader.model in others:
                continue
            if old or reader.rows:
                shown = reader.model_copy(update={"columns": old})
                found.append(TakenColumn(part.model, part.column, shown))
    return found


def _judge_rows_of_reader(taken: TakenColumn) -> ChangedRows:
    return ChangedRows.model_construct(
        model=taken.reader.model,
        columns=taken.reader.columns,
        rows=taken.reader.rows,
        why=f"It takes in the new column `{taken.column}` of `{taken.model}`.",
    )


def _judge_rows_of_change(change: Change, parts: list[ChangedPart] | None) -> ChangedRows | None:
    """Describes which rows of an edited model get other values; None if none do."""
    if change.category in _REUSES or change.kind == "EXTERNAL":
        return None  # the declaration of an external table moves no row of it
    if parts is None:  # nobody has followed its columns
        anew = change.category in _REBUILDS
        return ChangedRows.model_construct(model=change.model, certain=False) if anew else None
    columns = [part.column for part in parts if part.how == "computed" and part.column]
    rows = next((part for part in parts if part.how == "rows"), None)
    if columns or rows:
        why = rows.why if rows else None
        return ChangedRows.model_construct(
            model=change.model, columns=columns, rows=rows is not None, why=why
        )
    unknown = next((part for part in parts if part.how == "unknown"), None)
    if unknown is not None and change.category in _REBUILDS:
        return ChangedRows.model_construct(model=change.model, certain=False, why=unknown.why)
    return None


def _is_rebuilt(change: Change) -> bool:
    """Whether a model that nobody edited gets a new table or view."""
    return change.change == "indirect" and change.category != "indirect_non_breaking"
