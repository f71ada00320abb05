"""What a data diff clears: a finding about past results, where all of them were compared. Pure.

Nothing is cleared by a part: not by a window of the history, not by rows whose keys are not unique,
not by a model without those that read it. What is left open says which part was compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from ci_bot.bot.decision.followers import followers
from ci_bot.bot.decision.risks import counted
from ci_bot.contracts.documents.apply import NotCleared, TableDiff
from ci_bot.contracts.documents.policy import Weighed
from ci_bot.contracts.documents.report import Report, Risk
from ci_bot.contracts.durations import days_between
from ci_bot.contracts.rules import RULES

DATA_DIFF: Literal["data_diff"] = "data_diff"
CODE_ON_LOAD = RULES["R12-code-on-load"].id
# SQLMesh keeps no table of these: their readers hold what becomes of them.
_WITHOUT_TABLE = frozenset({"EMBEDDED", "EXTERNAL"})


def clear(
    report: Report, diffs: Sequence[TableDiff]
) -> tuple[list[Risk], list[Risk], list[NotCleared]]:
    """The findings of a review that still count, those that the diffs clear, and why others of
    their kind stand."""
    found = {diff.model: diff for diff in diffs}
    below = followers(report)
    tables = {c.model for c in report.changes if c.kind not in _WITHOUT_TABLE}
    own_code = any(item.rule == CODE_ON_LOAD for item in report.risks)
    counting: list[Risk] = []
    cleared: list[Risk] = []
    standing: list[NotCleared] = []
    for item in report.risks:
        model = item.model
        if model is None or not may_be_cleared(item):
            counting.append(item)
            continue
        readers = sorted(below.get(model, set()) & tables)
        why = _gap(model, readers, found) or (_CODE if own_code else None)
        if why is None:
            proof = proven([found[name] for name in (model, *readers)])
            cleared.append(item.model_copy(update={"weighed": _weighed(item, proof)}))
        else:
            counting.append(item)
            standing.append(NotCleared(rule=item.rule, model=model, why=why))
    return counting, cleared, standing


_CODE = (
    f"code of this pull request ran in the process that compared ({CODE_ON_LOAD}), so what it "
    "says is no proof"
)


def may_be_cleared(item: Risk) -> bool:
    """Whether a data diff can clear a finding: its rule says so, and it asks for a Review."""
    spec = RULES.get(item.rule)
    weights = {item.severity, item.weighed.weight if item.weighed else item.severity}
    decides = item.severity == "high" and "blocker" not in weights
    return decides and spec is not None and DATA_DIFF in spec.cleared_by


def proven(diffs: Sequence[TableDiff]) -> str:
    """What diffs without a gap show, the changed model's first."""
    rows = sum(diff.rows_prod or 0 for diff in diffs)
    readers = len(diffs) - 1
    with_them = f" and in {counted(readers, 'model')} that {_reads(readers)} it" if readers else ""
    return (
        f"Past results did not change: 0 of {counted(rows, 'row')} differ from prod in "
        f"`{diffs[0].model}`{with_them}, over all that prod has"
    )


def _reads(number: int) -> str:
    return "reads" if number == 1 else "read"


def _gap(model: str, readers: Iterable[str], found: Mapping[str, TableDiff]) -> str | None:
    """The first thing that keeps the diffs of a model and its readers from being a proof."""
    for name in (model, *readers):
        diff = found.get(name)
        why = "it was not compared" if diff is None else _gap_of(diff)
        if why is not None:
            return why if name == model else f"`{name}`, which reads it: {why}"
    return None


def _gap_of(diff: TableDiff) -> str | None:
    skipped = diff.skipped_because or ""
    schema = diff.schema_
    same = {diff.rows_pr, diff.matched, diff.full_match, diff.same} == {diff.rows_prod}
    gaps = (
        (not diff.compared, f"it was not compared. {skipped}"),
        (schema.removed or schema.changed, "columns are gone, or of another type"),
        (diff.null_keys or diff.duplicate_keys, "its keys do not tell all of its rows apart"),
        (not diff.rows_prod, "prod has no rows of it, so there was nothing to compare"),
        # Before what is incomplete: a difference in a part is one in the whole.
        (_differs(diff), "its rows are not the same as prod's"),
        (diff.same is None, f"its columns were not all compared. {skipped}"),
        (not same, "numbers in it differ by less than they are rounded to"),
        (not diff.complete, _part(diff)),
    )
    return next((why.strip().removesuffix(".") for open_, why in gaps if open_), None)


def _differs(diff: TableDiff) -> bool:
    rows = {diff.rows_prod, diff.rows_pr, diff.matched}
    return len(rows) > 1 or (diff.full_match is not None and diff.full_match != diff.matched)


def _part(diff: TableDiff) -> str:
    """Which part was compared, for a diff in which all of it is the same."""
    window, whole = diff.window, diff.window_of
    if window is None or whole is None:
        return "only a part of it was compared"
    text = f"only {window.start[:10]} to {window.end[:10]} was compared"
    part, days = (round(days_between(one.start, one.end) or 0) for one in (window, whole))
    return f"{text}, {part:,} of {counted(days, 'day')} that prod has" if part and days else text


def _weighed(item: Risk, proof: str) -> Weighed:
    weight = item.weighed.weight if item.weighed else item.severity
    return Weighed(by=DATA_DIFF, weight=weight, reason=proof)
