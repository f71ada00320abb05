"""R06, R08 and R12: what is computed again, and what else a change reaches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ci_bot.bot import report as reports
from ci_bot.bot.decision.risks import (
    BotFacts,
    JudgedWork,
    TeamLimits,
    Where,
    choose_is_or_are,
    choose_work_to_judge,
    count_noun,
    judges,
    list_model_costs,
    make_risk,
    map_models_below,
)
from ci_bot.bot.report import (
    TAKEN_COLUMNS,
    TakenColumn,
    describe_old_rows,
    judge_past_numbers,
    list_columns_taken_in,
)
from ci_bot.protocol.cost import format_executor_time
from ci_bot.protocol.files import DEFAULT_MAX_INTERVALS
from ci_bot.protocol.plan import Change, Cost, ModelRange, select_tables, sum_planned_work
from ci_bot.protocol.review_report import ReviewFacts, Risk
from ci_bot.protocol.rules import RULES, find_rule, quote_names

BREAKING_REBUILD = find_rule("R06-breaking-rebuild")
HISTORY_LOST = find_rule("R06-history-lost")
PAST_NUMBERS = find_rule("R06-past-numbers")
METADATA_BACKFILL = find_rule("R06-metadata-backfill")
RESTATEMENT_ELSEWHERE = find_rule("R08-restatement-elsewhere")
CHANGED_ELSEWHERE = find_rule("R11-changed-elsewhere")
CODE_ON_LOAD = find_rule("R12-code-on-load")
SHARED_CHANGE = find_rule("R12-shared-change")
SAME_RESULT = RULES["same-result"].id  # the worker's proof


@judges(BREAKING_REBUILD)
def find_rebuild_risks(facts: ReviewFacts, limits: TeamLimits, bot: BotFacts) -> Iterator[Risk]:
    """R06: a breaking change builds the model, and all models that read it, from the beginning."""
    work = choose_work_to_judge(facts)
    downstream = map_models_below(facts)
    same = {f.model for f in facts.findings if f.rule == SAME_RESULT}
    for change in facts.changes:
        if change.change != "direct" or change.category != "breaking" or change.from_base:
            continue
        readers = sorted(downstream.get(change.model, ()))
        harmless = change.model in same or (change.kind == "EXTERNAL" and not readers)
        yield make_risk(
            BREAKING_REBUILD,
            f"{_describe_meaning_of_rebuild(work, change, same)}: "
            f"{_describe_work(work, change, facts.environment)}; "
            f"{_describe_rebuilt_readers(work, readers)}.",
            "the owner confirms that past results are meant to change, best with a data diff",
            severity="low" if harmless else None,
            model=change.model,
            path=change.path,
        )


def _describe_meaning_of_rebuild(work: JudgedWork, change: Change, same: set[str | None]) -> str:
    judged = work.models.get(change.model)
    if change.model in same:
        # SQLMesh compares texts; so only the cost matters.
        return "The result is the same as before, and SQLMesh calls the change breaking"
    if judged is None:
        return "Breaking change"
    if judged.is_preview_only:
        return "The new definition counts from now on"
    if judged.item.action == "seed":
        return "The rows of the seed differ"
    if judged.item.action == "incremental":
        return "The new definition counts for all of history"
    return "The new definition counts for all rows"


_WHOLE_WORK = {
    "recreate_view": "the view is replaced and readers see the new results at once",
    "seed": "the file is loaded again",
}


def _describe_work(work: JudgedWork, change: Change, environment: str) -> str:
    judged = work.models.get(change.model)
    if judged is None:
        return (
            "the registered columns of the source differ"
            if change.kind == "EXTERNAL"
            else f"the {change.kind} model is replaced, with nothing to backfill in this plan"
        )
    item = judged.item
    if judged.is_preview_only:
        preview = (
            f"a preview of {count_noun(item.intervals, 'interval')} is built in `{environment}`"
        )
        if not work.prod_known:
            return f"{preview}; what prod builds after the merge is not known"
        return f"{preview}, and {judged.old_rows or 'history stays'}"
    if judged.next_run:
        what = "view" if item.action == "recreate_view" else "table"
        return f"prod's next run computes the whole {what} again, and past numbers change then"
    if item.action != "incremental":
        return _WHOLE_WORK.get(item.action, "the whole table is computed again")
    since = f" since {item.start[:10]}" if item.start else ""
    verb = choose_is_or_are(item.intervals)
    text = f"{count_noun(item.intervals, 'interval')}{since} {verb} computed again"
    if judged.where == "prod" and judged.here < item.intervals:
        text += f", in prod after the merge (`{environment}` gets {judged.here:,})"
    return text


def _describe_rebuilt_readers(work: JudgedWork, readers: list[str]) -> str:
    """Describes which models get a new version for it, whatever columns they read."""
    if not readers:
        return "no other model is rebuilt because of it"
    judged = [work.models[name] for name in readers if name in work.models]
    rebuilt = sum_planned_work(one.item for one in judged if not one.is_preview_only)
    kept = [name for name in readers if name in work.models and work.models[name].is_preview_only]
    reached = [name for name in kept if work.models[name].old_rows is not None]
    stays = [name for name in kept if name not in reached]
    get = "gets" if len(readers) == 1 else "get"
    text = f"{count_noun(len(readers), 'model')} below {get} a new version ({quote_names(readers)})"
    if kept and not work.prod_known:
        return f"{text}, and how many of them prod builds again is not known"
    amounts = [(rebuilt.tables, "table"), (rebuilt.views, "view")]
    built = " and ".join(count_noun(number, noun) for number, noun in amounts if number)
    none = "it is not rebuilt" if len(readers) == 1 else "none of them is rebuilt"
    text += f", {built} rebuilt" if built else f", and {none}"
    text += f"; history stays in {quote_names(stays)}" if stays else ""
    return text + (f"; old rows can change in {quote_names(reached)}" if reached else "")


@judges(PAST_NUMBERS)
def judge_past_numbers_risk(
    facts: ReviewFacts, limits: TeamLimits, bot: BotFacts
) -> Iterator[Risk]:
    """R06: rows differ, although SQLMesh's category does not say so."""
    changes = {change.model: change for change in facts.changes}
    downstream, old_rows = map_models_below(facts), describe_old_rows(facts)
    taken = list_columns_taken_in(facts)
    yield from _describe_taken_columns(taken, changes)
    for rows in judge_past_numbers(facts).changed:
        change = changes[rows.model]
        if change.category not in ("non_breaking", "forward_only"):
            continue
        if any(one.reader.model == rows.model for one in taken):
            continue  # the same question is not asked twice
        are = choose_is_or_are(len(rows.columns))
        what = rows.why or f"{quote_names(rows.columns)} {are} computed differently."
        readers = sorted(downstream.get(change.model, ()))
        yield make_risk(
            PAST_NUMBERS,
            f"{what} {_describe_readers_past_numbers(change, readers, old_rows.get(change.model))}",
            "the owner confirms that past results are meant to change",
            model=change.model,
            path=change.path,
        )


def _describe_taken_columns(
    taken: Iterable[TakenColumn], changes: Mapping[str, Change]
) -> Iterator[Risk]:
    by_model: dict[str, list[TakenColumn]] = {}
    for one in taken:
        by_model.setdefault(one.model, []).append(one)
    for model, found in by_model.items():
        columns = list(dict.fromkeys(one.column for one in found))
        readers = list(dict.fromkeys(one.reader.model for one in found))
        take = "takes" if len(readers) == 1 else "take"
        noun, them = ("column", "it") if len(columns) == 1 else ("columns", "them")
        yield make_risk(
            PAST_NUMBERS,
            f"{quote_names(readers)} {take} in the new {noun} {quote_names(columns)} without "
            f"naming {them} (by a star, or by a name without a table), so rows or values of "
            "before are computed differently. SQLMesh calls the change non-breaking.",
            "the owner confirms that past results are meant to change, or the queries below name "
            "their columns",
            model=model,
            subject=TAKEN_COLUMNS,
            path=changes[model].path,
        )


def _describe_readers_past_numbers(change: Change, readers: list[str], old_rows: str | None) -> str:
    """Describes what happens to models below, which SQLMesh does not rebuild."""
    if old_rows is not None:
        below = f"; {quote_names(readers)} can get other numbers then, too" if readers else ""
        return f"The change is forward-only, and a merge builds nothing: {old_rows}{below}."
    if change.category == "forward_only":
        below = f", also in what reads it ({quote_names(readers)})" if readers else ""
        return (
            "The plan is forward-only, and this kind of model has no history that stays: prod's "
            f"next run computes all of it again, and past numbers change then{below}."
        )
    if not readers:
        below = "no other model reads it"
    else:
        keep = "keeps" if len(readers) == 1 else "keep"
        below = (
            f"{count_noun(len(readers), 'model')} below {choose_is_or_are(len(readers))} not "
            f"rebuilt and {keep} the old rows ({quote_names(readers)})"
        )
    return f"The model is built again, and SQLMesh calls the change non-breaking: {below}."


@judges(HISTORY_LOST)
def judge_history_risk(facts: ReviewFacts, limits: TeamLimits, bot: BotFacts) -> Iterator[Risk]:
    """R06: a table with less of the past replaces prod's table."""
    plan = facts.prod_plan
    drift = {change.model for change in facts.changes if change.from_base}
    paths = {change.model: change.path for change in facts.changes}
    lost: dict[str, list[ModelRange]] = {}
    for gap in plan.lost if plan else ():
        if gap.model not in drift:
            lost.setdefault(gap.model, []).append(gap)
    for model, ranges in lost.items():
        first, more = ranges[0], len(ranges) - 1
        yield make_risk(
            HISTORY_LOST,
            f"Prod's table holds {first.start[:10]} to {first.end[:10]}"
            + (f" and {count_noun(more, 'more range')}" if more else "")
            + ", and the table that replaces it after the merge will not: SQLMesh builds a new "
            "table from the model's `start`, and without one only its newest interval.",
            "the model's `start` covers what prod holds, or its owner confirms that it may go",
            model=model,
            path=paths.get(model),
        )


@judges(METADATA_BACKFILL)
def judge_metadata_risk(facts: ReviewFacts, limits: TeamLimits, bot: BotFacts) -> Iterator[Risk]:
    """R06: a change of metadata makes prod build more, as an earlier `start` does."""
    work = choose_work_to_judge(facts)
    gaps = {gap.model for gap in facts.prod_plan.gaps} if facts.prod_plan else set()
    for change in facts.changes:
        judged = work.models.get(change.model)
        if change.change != "metadata" or change.from_base or judged is None:
            continue
        if judged.where == "prod" and judged.item.action == "incremental":
            if change.model in gaps:
                continue  # prod lacks them without this change, and another rule says that
            since = f" since {judged.item.start[:10]}" if judged.item.start else ""
            yield make_risk(
                METADATA_BACKFILL,
                f"Only metadata changes, and prod builds "
                f"{count_noun(judged.item.intervals, 'interval')}{since} after the merge.",
                "the owner confirms the longer history",
                model=change.model,
                path=change.path,
            )


@judges(RESTATEMENT_ELSEWHERE)
def find_restatement_risks(facts: ReviewFacts, limits: TeamLimits, bot: BotFacts) -> Iterator[Risk]:
    """R08: a restatement clears intervals that another environment reads."""
    for item in facts.restatements:
        if item.environments:
            others = quote_names(item.environments)
            use = "uses" if len(item.environments) == 1 else "use"
            yield make_risk(
                RESTATEMENT_ELSEWHERE,
                f"Clears {item.start[:10]} to {item.end[:10]}, which {others} also {use}.",
                "the owners of these environments agree",
                model=item.model,
            )


@judges(SHARED_CHANGE)
def judge_shared_code(facts: ReviewFacts, limits: TeamLimits, bot: BotFacts) -> Iterator[Risk]:
    """R12: models change although their own files do not: a macro, a setting, a default."""
    if bot.changed_files is None:
        return
    touched = set(bot.changed_files)
    direct = {change.model for change in facts.changes if change.change == "direct"}
    # A model that is read again because a model above it changed follows that one. So does a model
    # that reads a table which now is a model.
    above_them = direct | {change.model for change in facts.changes if change.change == "added"}
    following = {below for above, below in facts.lineage.edges if above in above_them}
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
        one = len(through) == 1
        yield make_risk(
            SHARED_CHANGE,
            f"{count_noun(len(through), 'model')} "
            f"{'changes although its file does' if one else 'change although their files do'} not "
            f"({quote_names(through)}): shared code or a setting does it.",
            f"a reviewer has seen what the shared change does to {'it' if one else 'each of them'}",
        )


@judges(CODE_ON_LOAD)
def find_code_on_load(facts: ReviewFacts, limits: TeamLimits, bot: BotFacts) -> Iterator[Risk]:
    """R12: the code that computed this report is part of the change."""
    if not bot.code_on_load:
        return
    removed = [path for path in bot.code_on_load if path in bot.removed_code]
    there = [path for path in bot.code_on_load if path not in bot.removed_code]
    sentences: list[str] = []
    if there and bot.load_known:
        sentences.append(
            f"{quote_names(there)} {'runs' if len(there) == 1 else 'run'} while this report is "
            "computed, so this pull request could falsify it."
        )
    elif there:
        sentences.append(
            "This pull request could falsify this report: it is not known which files were opened "
            "while the project was loaded, and "
            f"{quote_names(there)} {choose_is_or_are(len(there))} code."
        )
    if removed:
        one = len(removed) == 1
        sentences.append(
            f"{quote_names(removed)} {'is' if one else 'are'} removed: code that uses "
            f"{'it' if one else 'them'} while this report is computed may do something else now."
        )
    yield make_risk(
        CODE_ON_LOAD,
        " ".join(sentences),
        f"a person has read {'this file' if len(bot.code_on_load) == 1 else 'these files'}",
        path=bot.code_on_load[0],
    )


@judges(CHANGED_ELSEWHERE)
def judge_environments_risk(
    facts: ReviewFacts, limits: TeamLimits, bot: BotFacts
) -> Iterator[Risk]:
    """R11: another open pull request changes the same model."""
    for change in facts.changes:
        if change.also_in and not change.from_base:
            yield make_risk(
                CHANGED_ELSEWHERE,
                f"Also changed by {', '.join(change.also_in)}.",
                "the pull requests are put in order",
                model=change.model,
            )


# R06, R07 and batches: how much work is too much, by the limits that a team has set.


INTERVAL_LIMIT = find_rule("R06-interval-limit")
NEAR_BUDGET = find_rule("R07-near-budget")
NOT_KNOWN = find_rule("R07-not-known")
OVER_BUDGET = find_rule("R07-over-budget")
BATCH_SIZE_MISSING = find_rule("batch-size-missing")
BATCHLESS_INTERVALS = 100


@judges(INTERVAL_LIMIT)
def judge_amount_risk(facts: ReviewFacts, limits: TeamLimits, bot: BotFacts) -> Iterator[Risk]:
    """R06: there are more intervals than the limit."""
    work, given = choose_work_to_judge(facts), limits.max_intervals
    total = work.total.intervals
    limit = DEFAULT_MAX_INTERVALS if given is None else given
    if total > limit:
        whose = " by default" if given is None else ""
        yield make_risk(
            INTERVAL_LIMIT,
            f"{count_noun(total, 'interval')} to build "
            f"{_describe_place_of_plan_work(work.where, facts)}; the limit{whose} is {limit:,}.",
            "the plan is smaller (`start`, `select-model`), or `max-intervals` is raised"
            if work.where == "environment"
            else "the change rebuilds less, or `max-intervals` is raised",
        )


def _describe_environment(where: Where, environment: str) -> str:
    return reports.SENTENCES.after_merge if where == "prod" else f"in `{environment}`"


def _describe_place_of_plan_work(where: Where, facts: ReviewFacts) -> str:
    """Describes where and when a whole plan is built.

    Prod builds with the merge, with the run after it, or with both.
    """
    plan = facts.prod_plan
    if where == "environment" or plan is None or not select_tables(plan.next_run):
        return _describe_environment(where, facts.environment)
    both = select_tables(plan.full_backfill)
    return "in prod, after the merge and with its next run" if both else "with prod's next run"


@judges(NEAR_BUDGET, NOT_KNOWN, OVER_BUDGET)
def find_budget_risks(facts: ReviewFacts, limits: TeamLimits, bot: BotFacts) -> Iterator[Risk]:
    """R07: the estimate is, or may be, above the budget, or that is unknown."""
    cap = limits.max_executor_hours
    if cap is None:
        return
    costs = list_model_costs(facts)
    clears = "the plan is smaller, or `max-executor-hours` is raised"
    dearest, where = costs[0]
    middle = dearest.find_hours_above(cap)
    if middle is not None:
        yield make_risk(
            OVER_BUDGET,
            f"{'At least' if dearest.unknown else 'About'} {format_executor_time(middle)} of "
            f"executor time {_describe_place_of_plan_work(where, facts)}"
            f"{_describe_unknown_cost(dearest)}; the limit is {format_executor_time(cap)}.",
            clears,
        )
        return
    high = max((cost.executor_hours_high or 0.0 for cost, _ in costs), default=0.0)
    if high > cap:
        yield make_risk(
            NEAR_BUDGET,
            f"Up to {format_executor_time(high)} of executor time are possible; the limit is "
            f"{format_executor_time(cap)}.",
            clears,
        )
    incomplete = next(((cost, where) for cost, where in costs if cost.unknown), None)
    if incomplete is not None:
        cost, where = incomplete
        part = cost.executor_hours_mid
        known = "nothing" if part is None else f"at least {format_executor_time(part)}"
        yield make_risk(
            NOT_KNOWN,
            f"Whether the limit of {format_executor_time(cap)} holds "
            f"{_describe_place_of_plan_work(where, facts)} is not known: {known} is expected"
            f"{_describe_unknown_cost(cost)}.",
            "an apply has left the figures of these models in the ledger",
        )


def _describe_unknown_cost(cost: Cost) -> str:
    if not cost.unknown:
        return ""
    return (
        f" ({len(cost.unknown):,} of {count_noun(cost.tables, 'table')} have no recorded run: "
        f"{quote_names(cost.unknown)})"
    )


@judges(BATCH_SIZE_MISSING)
def judge_one_job_risk(facts: ReviewFacts, limits: TeamLimits, bot: BotFacts) -> Iterator[Risk]:
    """One job computes a long history and may run out of memory."""
    plan = facts.prod_plan
    built = {item.model for item in facts.backfill} - {item.model for item in facts.work}
    later = {item.model: item for item in plan.backfill} if plan else {}
    for name, judged in choose_work_to_judge(facts).models.items():
        # If an apply has built it here, only what prod builds itself is left.
        item = later.get(name) if name in built else judged.item
        where: Where = "prod" if name in built else judged.where
        if (
            item is not None
            and item.action == "incremental"
            and item.batches == 1
            and item.intervals > BATCHLESS_INTERVALS
        ):
            yield make_risk(
                BATCH_SIZE_MISSING,
                f"One job computes {count_noun(item.intervals, 'interval')} "
                f"{_describe_environment(where, facts.environment)}.",
                "the model has a `batch_size`",
                severity=None if item.kind == "INCREMENTAL_BY_TIME_RANGE" else "low",
                model=name,
            )
