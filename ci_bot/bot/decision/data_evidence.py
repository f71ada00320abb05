"""The decision after an apply: the review's, without findings that the data clears or with new."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from ci_bot.bot.decision.evidence_rules import NOT_CHECKED
from ci_bot.bot.decision.judgement import decide_by_risks
from ci_bot.bot.decision.risks import (
    TeamLimits,
    compares,
    count_noun,
    make_risk,
    map_models_below,
    sort_risks,
)
from ci_bot.bot.report import TAKEN_COLUMNS, group_findings
from ci_bot.protocol.apply_report import ApplyDocument, ApplyVerdict, NotCleared, TableDiff
from ci_bot.protocol.cost import count_days_between
from ci_bot.protocol.plan import Checks
from ci_bot.protocol.review_report import Report, Risk, Weighed
from ci_bot.protocol.rules import RULES, find_rule

# What a data diff clears: a finding about past results, if all of them were compared. Pure.
#
# A part clears nothing: not a window of the history, not rows whose keys are not unique, not a
# model without the models that read it. What stays open says which part was compared.


DATA_DIFF: Literal["data_diff"] = "data_diff"
CODE_ON_LOAD = RULES["R12-code-on-load"].id
# SQLMesh keeps no table of these kinds: the effect on them shows in their readers.
_WITHOUT_TABLE = frozenset({"EMBEDDED", "EXTERNAL"})


def clear_risks_by_data(
    report: Report, diffs: Sequence[TableDiff]
) -> tuple[list[Risk], list[Risk], list[NotCleared]]:
    """Sorts the findings of a review by what the diffs show.

    Returns:
        Those that still count, those that the diffs clear, and why others of their kind stay.
    """
    found = {diff.model: diff for diff in diffs}
    below = map_models_below(report)
    tables = {c.model for c in report.changes if c.kind not in _WITHOUT_TABLE}
    own_code = any(item.rule == CODE_ON_LOAD for item in report.risks)
    counting: list[Risk] = []
    cleared: list[Risk] = []
    standing: list[NotCleared] = []
    for item in report.risks:
        model = item.model
        if model is None or not may_risk_be_cleared_by_data(item):
            counting.append(item)
            continue
        readers = sorted(below.get(model, set()) & tables)
        why = _find_gap_in_proof(model, readers, found) or (_CODE if own_code else None)
        if why is None:
            proof = describe_proof_that_clears_risk([found[name] for name in (model, *readers)])
            cleared.append(item.model_copy(update={"weighed": _weigh_risk_by_proof(item, proof)}))
        else:
            counting.append(item)
            standing.append(NotCleared(rule=item.rule, model=model, why=why))
    return counting, cleared, standing


_CODE = (
    f"code of this pull request ran in the process that compared ({CODE_ON_LOAD}), so what it "
    "says is no proof"
)


def may_risk_be_cleared_by_data(item: Risk) -> bool:
    """Whether a data diff can clear a finding: its rule says so, and it asks for a Review."""
    spec = RULES.get(item.rule)
    weights = {item.severity, item.weighed.weight if item.weighed else item.severity}
    decides = item.severity == "high" and "blocker" not in weights
    decides &= item.subject != TAKEN_COLUMNS
    return decides and spec is not None and DATA_DIFF in spec.cleared_by


def describe_proof_that_clears_risk(diffs: Sequence[TableDiff]) -> str:
    """Describes what diffs without a gap show; the first one is of the changed model."""
    rows = sum(diff.rows_prod or 0 for diff in diffs)
    readers = len(diffs) - 1
    with_them = (
        f" and in {count_noun(readers, 'model')} that {_choose_read_or_reads(readers)} it"
        if readers
        else ""
    )
    return (
        f"Past results did not change: 0 of {count_noun(rows, 'row')} differ from prod in "
        f"`{diffs[0].model}`{with_them}, over all that prod has"
    )


def _choose_read_or_reads(number: int) -> str:
    return "reads" if number == 1 else "read"


def _find_gap_in_proof(
    model: str, readers: Iterable[str], found: Mapping[str, TableDiff]
) -> str | None:
    """Finds the first thing that keeps the diffs of a model and its readers from being a proof."""
    for name in (model, *readers):
        diff = found.get(name)
        why = "it was not compared" if diff is None else _describe_gap_in_proof(diff)
        if why is not None:
            return why if name == model else f"`{name}`, which reads it: {why}"
    return None


def _describe_gap_in_proof(diff: TableDiff) -> str | None:
    skipped = diff.skipped_because or ""
    schema = diff.schema_
    same = {diff.rows_pr, diff.matched, diff.full_match, diff.same} == {diff.rows_prod}
    gaps = (
        (not diff.compared, f"it was not compared. {skipped}"),
        (schema.removed or schema.changed, "columns are gone, or of another type"),
        (diff.null_keys or diff.duplicate_keys, "its keys do not tell all of its rows apart"),
        (not diff.rows_prod, "prod has no rows of it, so there was nothing to compare"),
        # Before the check for gaps: a difference in a part is one in the whole.
        (_has_differences(diff), "its rows are not the same as prod's"),
        (diff.same is None, f"its columns were not all compared. {skipped}"),
        (not same, "numbers in it differ by less than they are rounded to"),
        (not diff.complete, _describe_compared_part(diff)),
    )
    return next((why.strip().removesuffix(".") for open_, why in gaps if open_), None)


def _has_differences(diff: TableDiff) -> bool:
    rows = {diff.rows_prod, diff.rows_pr, diff.matched}
    return len(rows) > 1 or (diff.full_match is not None and diff.full_match != diff.matched)


def _describe_compared_part(diff: TableDiff) -> str:
    """Describes which part was compared, for a diff in which all of that part is the same."""
    window, whole = diff.window, diff.window_of
    if window is None or whole is None:
        return "only a part of it was compared"
    text = f"only {window.start[:10]} to {window.end[:10]} was compared"
    part, days = (round(count_days_between(one.start, one.end) or 0) for one in (window, whole))
    return f"{text}, {part:,} of {count_noun(days, 'day')} that prod has" if part and days else text


def _weigh_risk_by_proof(item: Risk, proof: str) -> Weighed:
    weight = item.weighed.weight if item.weighed else item.severity
    return Weighed(by=DATA_DIFF, weight=weight, reason=proof)


# R09: what the data diff of an apply says about rows, keys and null rates.


DUPLICATE_KEYS = find_rule("R09-duplicate-keys")
NULL_KEYS = find_rule("R09-null-keys")
ROWS_GAINED = find_rule("R09-rows-gained")
ROWS_LOST = find_rule("R09-rows-lost")
VALUES_DIFFER = find_rule("R09-values-differ")


def judge_risks_of_data_diffs(diffs: Iterable[TableDiff], limits: TeamLimits) -> list[Risk]:
    """Judges the risks of an apply's data diffs, each over the window that both sides have.

    A table that was not compared is listed as missing evidence, unless there is nothing in prod to
    compare it with. Two empty tables show nothing and are listed too: zero differences among zero
    rows are no match.
    """
    found: list[Risk] = []
    for diff in diffs:
        if diff.nothing_to_compare:
            continue
        if not diff.compared:
            found.append(
                make_risk(
                    NOT_CHECKED,
                    f"Data diff: not compared. {diff.skipped_because or ''}".strip(),
                    "the model has a grain or a unique key, and both sides have data",
                    subject="data diff",
                    model=diff.model,
                )
            )
        else:
            found.extend(risk for rule in compares for risk in rule(diff, limits))
    return sort_risks(found)


@compares(NOT_CHECKED, DUPLICATE_KEYS, NULL_KEYS, ROWS_GAINED, ROWS_LOST, VALUES_DIFFER)
def find_risks_of_data_differences(diff: TableDiff, limits: TeamLimits) -> Iterator[Risk]:
    """Finds keys that are not unique or null, and differences above the tolerance."""
    tolerance = limits.tolerances.get(diff.model, limits.diff_tolerance)
    prod, new = diff.rows_prod, diff.rows_pr
    if prod is None or new is None:
        return
    if not prod:
        yield make_risk(
            NOT_CHECKED,
            "Data diff: prod has no rows in the window, so nothing could be compared.",
            "prod has data in the window",
            subject="data diff",
            model=diff.model,
        )
        return
    if diff.duplicate_keys:
        yield make_risk(
            DUPLICATE_KEYS,
            f"{diff.duplicate_keys:,} keys occur more than once.",
            "the key is unique again",
            model=diff.model,
        )
    if diff.null_keys:
        yield make_risk(
            NULL_KEYS,
            f"{diff.null_keys:,} rows have no key.",
            "no key is null",
            model=diff.model,
        )
    lost = (diff.only_prod or 0) / prod
    if lost > tolerance:
        yield make_risk(
            ROWS_LOST,
            f"{diff.only_prod:,} of {prod:,} rows of prod ({lost:.2%}) are gone.",
            "the loss is meant, or within `diff-tolerance`",
            model=diff.model,
        )
    gained = (diff.only_pr or 0) / prod
    if gained > tolerance:
        yield make_risk(
            ROWS_GAINED,
            f"{diff.only_pr:,} rows are new against {prod:,} of prod ({gained:.2%}).",
            "the new rows are meant, or within `diff-tolerance`",
            model=diff.model,
        )
    worst = [c for c in diff.columns if c.match_rate is not None and 1 - c.match_rate > tolerance]
    if worst:
        names = ", ".join(f"`{c.name}` {c.match_rate:.2%}" for c in worst[:5])
        yield make_risk(
            VALUES_DIFFER,
            f"Columns that no longer agree with prod (share that does): {names}.",
            "the difference is what the change is for, or within `diff-tolerance`",
            model=diff.model,
        )


# Evidence that a review lists as missing because only an apply can check it.
_NOW_CHECKED = ("audits", "data diff")


def decide_again_after_apply(
    report: Report, document: ApplyDocument, limits: TeamLimits
) -> tuple[Report, ApplyVerdict] | None:
    """Decides again with the evidence; returns the review and the verdict.

    None if the document is no evidence for this plan.

    Args:
        report: The review of this run itself. Only what an apply has checked is judged again.
        limits: How much a table may differ.
    """
    if document.result != "applied" or report.failure or document.plan_id != report.plan_id:
        return None
    shown = judge_risks_of_data_diffs(document.table_diff, limits)
    counting, cleared, standing = clear_risks_by_data(report, document.table_diff)
    missing = document.evidence_missing is not None
    kept = [item for item in counting if missing or not _is_risk_checked_now(item)]
    risks = sort_risks([*kept, *shown])
    decision, reasons = decide_by_risks(risks, report)
    verdict = ApplyVerdict(
        decision=decision, reasons=reasons, cleared=cleared, standing=standing, risks=shown
    )
    after = report.model_copy(
        update={
            "decision": decision,
            "reasons": reasons,
            "risks": risks,
            "findings": group_findings(risks),
            "set_aside": sort_risks([*report.set_aside, *cleared]),
            "checks": report.checks if missing else _add_apply_checks(report.checks, document),
        }
    )
    return after, verdict


def _is_risk_checked_now(item: Risk) -> bool:
    return item.rule == NOT_CHECKED.id and item.subject in _NOW_CHECKED and item.model is None


def _add_apply_checks(checks: Checks, document: ApplyDocument) -> Checks:
    """Adds what the apply has run: audits if there were any, and the data diff."""
    ran = document.audits
    audits, table_diff = checks.audits, checks.table_diff
    if ran.passed or ran.failed:
        status = "failed" if ran.failed else "passed"
        audits = audits.model_copy(update={"status": status, "not_run_because": None})
    if any(diff.compared for diff in document.table_diff):
        table_diff = table_diff.model_copy(update={"status": "compared", "not_run_because": None})
    return checks.model_copy(update={"audits": audits, "table_diff": table_diff})
