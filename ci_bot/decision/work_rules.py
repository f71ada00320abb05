"""R06, R07, R08 and R12: how much is computed again, and what else it reaches."""

from __future__ import annotations

from collections.abc import Iterator

from ci_bot.contracts.plan import Backfill
from ci_bot.contracts.report import ReviewFacts, Risk
from ci_bot.decision.given import BotFacts, Limits
from ci_bot.decision.risks import counted, listed, risk, shown

BATCHLESS_INTERVALS = 100


def rebuilds(facts: ReviewFacts, limits: Limits, bot: BotFacts) -> Iterator[Risk]:
    """R06: a breaking change builds the model, and everything that reads it, from its start."""
    backfill = {item.model: item for item in facts.backfill}
    cascade = _cascade(facts)
    same = {shown(f.model) for f in facts.findings if f.rule == "same-result" and f.model}
    for change in facts.changes:
        if change.change != "direct" or change.category != "breaking" or change.from_base:
            continue
        affected = sorted(cascade.get(change.model, ()))
        harmless = shown(change.model) in same or (change.kind == "EXTERNAL" and not affected)
        yield risk(
            "R06-breaking-rebuild",
            # SQLMesh compares texts; where the rules have proven the result to be the same, what
            # is left is the cost.
            "medium" if harmless else "high",
            f"Breaking change: {_work(backfill.get(change.model), change.kind)}"
            + (f"; {_rebuilt(affected, backfill)}" if affected else "; no model is built after it")
            + (". Its result is the same as before" if shown(change.model) in same else "")
            + ".",
            "the owner confirms that past results are meant to change, best with a data diff",
            model=change.model,
            path=change.path,
        )


def _cascade(facts: ReviewFacts) -> dict[str, set[str]]:
    """Per directly changed model, the indirectly breaking ones that follow from it."""
    follows: dict[str, set[str]] = {}
    for above, below in facts.lineage.edges:
        follows.setdefault(above, set()).add(below)
    breaking = {
        c.model
        for c in facts.changes
        if c.change == "indirect" and c.category in {"indirect_breaking", "breaking"}
    }
    found: dict[str, set[str]] = {}
    for change in facts.changes:
        if change.change != "direct":
            continue
        seen: set[str] = set()
        queue = [change.model]
        while queue:
            for reader in follows.get(queue.pop(), ()):
                if reader in breaking and reader not in seen:
                    seen.add(reader)
                    queue.append(reader)
        found[change.model] = seen
    return found


def _work(item: Backfill | None, kind: str) -> str:
    if item is None:
        if kind == "EXTERNAL":
            return "the registered columns of the source differ"
        return f"the {kind} model is replaced, with nothing to backfill in this plan"
    if item.preview:
        return f"a preview of {counted(item.intervals, 'interval')} is built, and history stays"
    if item.action == "recreate_view":
        return "the view is replaced and readers see the new results at once"
    since = f" since {item.start[:10]}" if item.start else ""
    return f"the table is built again, {counted(item.intervals, 'interval')}{since}"


def _rebuilt(affected: list[str], backfill: dict[str, Backfill]) -> str:
    tables = sum(m in backfill and backfill[m].action != "recreate_view" for m in affected)
    return (
        f"{counted(len(affected), 'model')} downstream follow ({listed(affected)}), "
        f"{counted(tables, 'table')} among them rebuilt"
    )


def too_much_work(facts: ReviewFacts, limits: Limits, bot: BotFacts) -> Iterator[Risk]:
    """R06: more intervals than the limit."""
    total = sum(item.intervals for item in facts.backfill)
    if limits.max_intervals is not None and total > limits.max_intervals:
        yield risk(
            "R06-interval-limit",
            "high",
            f"{counted(total, 'interval')} to build; the limit is {limits.max_intervals:,}.",
            "the plan is smaller (`start`, `select-model`), or `max-intervals` is raised",
        )


def over_budget(facts: ReviewFacts, limits: Limits, bot: BotFacts) -> Iterator[Risk]:
    """R07: the estimate is, or may be, above the budget."""
    cap, cost = limits.max_executor_hours, facts.cost
    if cap is None:
        return
    middle, high = cost.executor_hours_mid, cost.executor_hours_high
    clears = "the plan is smaller, or `max-executor-hours` is raised"
    if middle is not None and middle > cap:
        yield risk(
            "R07-over-budget",
            "blocker",
            f"About {middle:.1f} executor hours are expected; the limit is {cap:.1f}.",
            clears,
        )
    elif high is not None and high > cap:
        yield risk(
            "R07-near-budget",
            "medium",
            f"Up to {high:.1f} executor hours are possible; the limit is {cap:.1f}.",
            clears,
        )


def one_job_backfill(facts: ReviewFacts, limits: Limits, bot: BotFacts) -> Iterator[Risk]:
    """Seeds 10.2: a long history computed by one job may run out of memory."""
    for item in facts.backfill:
        if (
            item.action == "incremental"
            and item.batches == 1
            and item.intervals > BATCHLESS_INTERVALS
        ):
            yield risk(
                "batch-size-missing",
                "medium" if item.kind == "INCREMENTAL_BY_TIME_RANGE" else "low",
                f"One job computes {counted(item.intervals, 'interval')}.",
                "the model has a `batch_size`",
                model=item.model,
            )


def restatements(facts: ReviewFacts, limits: Limits, bot: BotFacts) -> Iterator[Risk]:
    """R08: a restatement clears intervals that another environment reads."""
    for item in facts.restatements:
        others = [name for name in item.environments if name != facts.environment]
        if others:
            yield risk(
                "R08-restatement-elsewhere",
                "high",
                f"Clears {item.start[:10]} to {item.end[:10]}, which {listed(others)} also use.",
                "the owners of these environments agree",
                model=item.model,
            )


def shared_code(facts: ReviewFacts, limits: Limits, bot: BotFacts) -> Iterator[Risk]:
    """R12: models change although their own files do not: a macro, a setting, a default."""
    if bot.changed_files is None:
        return
    touched = set(bot.changed_files)
    direct = {change.model for change in facts.changes if change.change == "direct"}
    # A model that is read again because of a changed one above follows that one.
    following = {below for above, below in facts.lineage.edges if above in direct}
    through = [
        change.model
        for change in facts.changes
        if change.change == "direct"
        and change.kind != "SEED"
        and change.model not in following
        and not change.from_base
        and change.path is not None
        and change.path not in touched
    ]
    if through:
        yield risk(
            "R12-shared-change",
            "medium",
            f"{counted(len(through), 'model')} change although their files do not "
            f"({listed(through)}): shared code or a setting does it.",
            "a reviewer has seen what the shared change does to each of them",
        )


def code_on_load(facts: ReviewFacts, limits: Limits, bot: BotFacts) -> Iterator[Risk]:
    """R12: the code that computed this report is part of the change."""
    if not bot.code_on_load:
        return
    files = listed(bot.code_on_load)
    yield risk(
        "R12-code-on-load",
        "high",
        f"This report was computed by code in this pull request: {files} run while the project is "
        "loaded."
        if bot.load_known
        else "This report may have been computed by code in this pull request: it is not known "
        f"which files were opened while the project was loaded, and {files} are code.",
        "a person has read these files",
        path=bot.code_on_load[0],
    )


def other_environments(facts: ReviewFacts, limits: Limits, bot: BotFacts) -> Iterator[Risk]:
    """R11: another open pull request changes the same model."""
    for change in facts.changes:
        others = bot.other_environments.get(change.model)
        if change.change in {"direct", "removed"} and others:
            yield risk(
                "R11-changed-elsewhere",
                "medium",
                f"Also changed by {', '.join(others)}.",
                "the pull requests are put in order",
                model=change.model,
            )
