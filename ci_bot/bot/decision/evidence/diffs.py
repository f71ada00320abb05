"""R09: what the data diff of an apply says about rows, keys and null rates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ci_bot.bot.decision.given import Limits
from ci_bot.bot.decision.registry import compares
from ci_bot.bot.decision.risks import ordered, risk
from ci_bot.bot.decision.rules.evidence_rules import NOT_CHECKED
from ci_bot.contracts.documents.apply import TableDiff
from ci_bot.contracts.documents.report import Risk
from ci_bot.contracts.rules import rule

DUPLICATE_KEYS = rule("R09-duplicate-keys")
NULL_KEYS = rule("R09-null-keys")
ROWS_GAINED = rule("R09-rows-gained")
ROWS_LOST = rule("R09-rows-lost")
VALUES_DIFFER = rule("R09-values-differ")


def diff_risks(diffs: Iterable[TableDiff], limits: Limits) -> list[Risk]:
    """The risks of an apply's data diffs, each over the window that both sides have.

    A table that was not compared is listed as missing evidence. Two empty tables show nothing and
    are listed too: zero differences among zero rows are no match.
    """
    found: list[Risk] = []
    for diff in diffs:
        if not diff.compared:
            found.append(
                risk(
                    NOT_CHECKED,
                    f"Data diff: not compared. {diff.skipped_because or ''}".strip(),
                    "the model has a grain or a unique key, and both sides have data",
                    subject="data diff",
                    model=diff.model,
                )
            )
        else:
            found.extend(risk for rule in compares for risk in rule(diff, limits))
    return ordered(found)


@compares(NOT_CHECKED, DUPLICATE_KEYS, NULL_KEYS, ROWS_GAINED, ROWS_LOST, VALUES_DIFFER)
def differences(diff: TableDiff, limits: Limits) -> Iterator[Risk]:
    """Keys that are no keys, and rows and values that the tolerance does not cover."""
    tolerance = limits.tolerances.get(diff.model, limits.diff_tolerance)
    prod, new = diff.rows_prod, diff.rows_pr
    if prod is None or new is None:
        return
    if not prod:
        yield risk(
            NOT_CHECKED,
            "Data diff: prod has no rows in the window, so nothing could be compared.",
            "prod has data in the window",
            subject="data diff",
            model=diff.model,
        )
        return
    if diff.duplicate_keys:
        yield risk(
            DUPLICATE_KEYS,
            f"{diff.duplicate_keys:,} keys occur more than once.",
            "the key is unique again",
            model=diff.model,
        )
    if diff.null_keys:
        yield risk(
            NULL_KEYS,
            f"{diff.null_keys:,} rows have no key.",
            "no key is null",
            model=diff.model,
        )
    lost = (diff.only_prod or 0) / prod
    if lost > tolerance:
        yield risk(
            ROWS_LOST,
            f"{diff.only_prod:,} of {prod:,} rows of prod ({lost:.2%}) are gone.",
            "the loss is meant, or within `diff-tolerance`",
            model=diff.model,
        )
    gained = (diff.only_pr or 0) / prod
    if gained > tolerance:
        yield risk(
            ROWS_GAINED,
            f"{diff.only_pr:,} rows are new against {prod:,} of prod ({gained:.2%}).",
            "the new rows are meant, or within `diff-tolerance`",
            model=diff.model,
        )
    worst = [c for c in diff.columns if c.match_rate is not None and 1 - c.match_rate > tolerance]
    if worst:
        names = ", ".join(f"`{c.name}` {c.match_rate:.2%}" for c in worst[:5])
        yield risk(
            VALUES_DIFFER,
            f"Columns that no longer agree with prod (share that does): {names}.",
            "the difference is what the change is for, or within `diff-tolerance`",
            model=diff.model,
        )
