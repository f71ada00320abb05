"""R01, R03 and R05: whether there is a plan at all, and one that prod can take.

And what an owner of a model has asked prod to build again after the merge.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from ci_bot.bot.decision.load_failure_cause import is_change_unread_by_sqlmesh
from ci_bot.bot.decision.reader_rules import PLANNED_FROM_BASE
from ci_bot.bot.decision.risks import (
    BotFacts,
    TeamLimits,
    choose_is_or_are,
    count_noun,
    judges,
    make_risk,
)
from ci_bot.bot.policy import IgnoreEntry, describe_policy_entry
from ci_bot.bot.report import describe_old_rows, judge_past_numbers
from ci_bot.protocol.base import name_what_does_not_load
from ci_bot.protocol.cost import format_executor_time
from ci_bot.protocol.plan import COMPUTED_WHOLE, Severity, sum_planned_work
from ci_bot.protocol.review_inputs import ProdRestatement, describe_range_of_restatement_document
from ci_bot.protocol.review_report import ReviewFacts, Risk
from ci_bot.protocol.rules import RULES, find_rule, quote_names

BASE_BROKEN = find_rule("R01-base-broken")
LINT_ERROR = find_rule("R01-lint-error")
LOAD_FAILED = find_rule("R01-load-failed")
PLAN_FAILED = find_rule("R01-plan-failed")
PROD_PLAN_FAILS = find_rule("R01-prod-plan-fails")
UNCATEGORIZED = find_rule("R01-uncategorized")
CHANGED_IN_RUNS = RULES["changed-in-runs"].id  # the worker's
CONFLICT = find_rule("R03-conflict")
FORWARD_ONLY_SCHEMA = find_rule("R05-forward-only-schema")
FORWARD_ONLY_DESTRUCTIVE = find_rule("R05-forward-only-destructive")
LINT_WARNING = find_rule("lint-warning")
PROD_GAPS = find_rule("prod-gaps")
COLUMNS_LOST = RULES["forward-only-destructive"].id  # the worker names the columns

# The rules for a failure of the plan itself.
FAILURE_RISKS = frozenset({LOAD_FAILED.id, PLAN_FAILED.id})
_PART = r'(?:"[^"\n]+"|`[^`\n]+`)'
_FQN = re.compile(rf"{_PART}(?:\.{_PART})+")
# The end of SQLGlot's own message, before the excerpt.
_PARSER_STOPPED = re.compile(r"Line \d+, Col: \d+\.(?=\n)")
_REFUSED = re.compile(r"forward-only model[^:]*: ([^\s,]+(?:, [^\s,]+)*)\.(?:\s|$)")
_DESTRUCTIVE = re.compile(r"destructive change to a forward-only", re.IGNORECASE)


@judges(LOAD_FAILED, PLAN_FAILED)
def judge_risk_of_failed_plan(
    facts: ReviewFacts, limits: TeamLimits, bot: BotFacts
) -> Iterator[Risk]:
    """R01: there is no plan."""
    failure = facts.failure
    if failure is None:
        return
    model = failure.model or _find_blamed_model(failure.message, bot.changed_files or ())
    loading = failure.stage in {"configuration", "load"}
    yield make_risk(
        LOAD_FAILED if loading else PLAN_FAILED,
        f"Stage {failure.stage}: {_drop_excerpt(failure.message)}",
        failure.hint or ("the project loads" if loading else "SQLMesh accepts the plan"),
        model=model,
        path=failure.path,
        line=failure.line,
    )


@judges(BASE_BROKEN)
def find_risk_of_broken_base(
    facts: ReviewFacts, limits: TeamLimits, bot: BotFacts
) -> Iterator[Risk]:
    """R01: the base branch does not load. The pull request does not cause that."""
    if not facts.base_failures or facts.failure is not None:
        return
    first = facts.base_failures[0]
    place = f"`{first.path}`" + (f" line {first.line}" if first.line else "") if first.path else ""
    where = f" ({place})" if place else ""
    why = _shorten_failure_message(first.message)
    if first.project is None:  # else the message names the project
        why = f"{name_what_does_not_load(facts.base_failures)}{where}: {why}"
    if facts.project.models:
        cause = "With this pull request it does. There was nothing to compare with: all is new."
    else:
        cause = "This pull request is not why, and nothing of it could be planned or checked."
    harmless = not facts.project.models and is_change_unread_by_sqlmesh(bot.changed_files)
    yield make_risk(
        BASE_BROKEN,
        f"{why} {cause}",
        "the base branch loads here"
        if first.project is None
        else "that project's code loads here: its libraries and versions are here, too",
        severity="medium" if harmless else None,
        path=first.path,
        line=first.line,
    )


def _shorten_failure_message(message: str) -> str:
    """Returns the part of a message that says what is wrong, as one sentence."""
    lines = [line.strip() for line in message.splitlines() if line.strip()] or [""]
    # SQLMesh names the file in the first line, perhaps more than once, and then what is wrong.
    found = next((line for line in lines if not line.endswith(":")), lines[-1])
    return found if found.endswith((".", "!", "?")) else f"{found}."


def _drop_excerpt(message: str) -> str:
    """Returns a message without the SQL that a parser quotes below; the failure shows that."""
    found = _PARSER_STOPPED.search(message)
    return message[: found.end()] if found else message


def _find_blamed_model(message: str, changed_files: tuple[str, ...]) -> str | None:
    """Finds the model that an error message names; if it names several, one that was changed."""
    named = [match.group(0) for match in _FQN.finditer(message)]
    stems = {PurePosixPath(path).stem.lower() for path in changed_files}
    changed = [name for name in named if name.strip('"`').split(".")[-1].strip('"`') in stems]
    return next(map(_name_model_of_plan_message, changed or named), None)


def _name_model_of_plan_message(fqn: str) -> str:
    """Names a model of a message as reports do: its catalog counts as the default one."""
    return ".".join(part.strip('"`') for part in re.findall(_PART, fqn)[-2:])


@judges(UNCATEGORIZED)
def find_risks_of_uncategorized(
    facts: ReviewFacts, limits: TeamLimits, bot: BotFacts
) -> Iterator[Risk]:
    """R01: only a person can apply a changed model without a category."""
    for change in facts.changes:
        if change.category == "uncategorized" and change.change in {"direct", "added"}:
            yield make_risk(
                UNCATEGORIZED,
                "SQLMesh gave this change no category, so the plan cannot be applied.",
                "plan.auto_categorize_changes is on for this kind, or a person plans and chooses",
                model=change.model,
                path=change.path,
            )


@judges(LINT_ERROR, LINT_WARNING)
def judge_risks_of_lint_errors(
    facts: ReviewFacts, limits: TeamLimits, bot: BotFacts
) -> Iterator[Risk]:
    """R01: the project's own linter reports an error; its warnings stay notes."""
    lint = facts.checks.lint
    for finding in lint.findings:
        error = finding.severity in {"blocker", "high"}
        yield make_risk(
            LINT_ERROR if error else LINT_WARNING,
            f"{finding.rule}: {finding.evidence}",
            finding.clears_when or "the linter is satisfied",
            # For a rule of the project only its name and its sentence are known.
            subject=f"{finding.rule}: {finding.evidence}",
            model=finding.model,
            path=finding.path,
            line=finding.line,
        )
    if lint.status == "failed" and not any(
        finding.severity in {"blocker", "high"} for finding in lint.findings
    ):
        yield make_risk(
            LINT_ERROR,
            f"The project's linter reports {count_noun(lint.errors, 'error')}.",
            "`sqlmesh lint` passes",
        )


@judges(CONFLICT)
def find_risk_of_merge_conflict(
    facts: ReviewFacts, limits: TeamLimits, bot: BotFacts
) -> Iterator[Risk]:
    """R03: the pull request cannot be merged."""
    if bot.conflict:
        yield make_risk(
            CONFLICT,
            "The pull request conflicts with its base, so there is no merged project to plan.",
            "the conflict is resolved",
        )


@judges(FORWARD_ONLY_SCHEMA, FORWARD_ONLY_DESTRUCTIVE)
def judge_risks_of_forward_only_schema(
    facts: ReviewFacts, limits: TeamLimits, bot: BotFacts
) -> Iterator[Risk]:
    """R05: a merge would alter a production table in place, or SQLMesh refuses to."""
    known = {f.model for f in facts.findings if f.rule == COLUMNS_LOST and f.model is not None}
    only_more = {
        change.model
        for change in facts.changes
        if change.columns and all(column.before is None for column in change.columns)
    }
    prod = facts.prod_plan
    kinds = {change.model: change.kind for change in facts.changes}
    sentences = describe_old_rows(facts)
    if prod is not None:
        for model in prod.forward_only_schema_changes:
            kind = kinds.get(model, "")
            again, old_rows = kind in COMPUTED_WHOLE, sentences.get(model)
            if model not in known:
                yield make_risk(
                    FORWARD_ONLY_SCHEMA,
                    "A merge alters the schema of this table in place, and prod's next run "
                    "computes the whole table again."
                    if again
                    else "A merge alters the schema of this forward-only table in place; "
                    f"{old_rows or 'its history is not computed again'}.",
                    "its owner confirms the new columns and that past numbers may change"
                    if again
                    else "its owner confirms the new columns and what history will hold",
                    severity="medium" if model in only_more else None,
                    model=model,
                )
    for text in (facts.failure and facts.failure.message, prod and prod.failure):
        if text and _DESTRUCTIVE.search(text) and not known:
            for refused in _list_refused_models(text) or [None]:
                yield make_risk(
                    FORWARD_ONLY_DESTRUCTIVE,
                    "SQLMesh refuses a destructive change of a forward-only model.",
                    "the column stays, or the change is allowed on purpose (input "
                    "`allow-destructive`)",
                    model=refused,
                )
            return


def _list_refused_models(text: str) -> list[str | None]:
    """Lists the models that a refusal names at its end."""
    named = _REFUSED.search(text)
    return list(named[1].split(", ")) if named else []


@judges(PROD_PLAN_FAILS, PROD_GAPS)
def find_risks_of_prod_plan(
    facts: ReviewFacts, limits: TeamLimits, bot: BotFacts
) -> Iterator[Risk]:
    """R01 for the plan that a merge would cause in prod, and the gaps in prod."""
    plan = facts.prod_plan
    if plan is None:
        return
    if plan.would_fail and facts.failure is None:
        yield make_risk(
            PROD_PLAN_FAILS,
            f"Planned against prod, the same head fails: {plan.failure or 'no reason given'}",
            "the plan against prod succeeds",
        )
    if plan.gaps:
        yield make_risk(
            PROD_GAPS,
            "Prod lacks intervals inside the history of "
            f"{quote_names(gap.model for gap in plan.gaps)}.",
            "prod's gaps are filled (`sqlmesh run`), or known and accepted",
        )


# The plan validation matrix: what each kind of change needs from a reviewer.
#
# Breaking changes are R06, destructive ones R04 and R05. Here are the lighter rows: logic, additive
# and metadata changes, and the base branch's own changes, which this pull request does not cause.


ADDITIVE_CHANGE = find_rule("additive-change")
BASE_DRIFT = find_rule("base-drift")
LOGIC_CHANGED_FORWARD_ONLY = find_rule("logic-changed-forward-only")
METADATA_ONLY = find_rule("metadata-only")


@judges(LOGIC_CHANGED_FORWARD_ONLY)
def find_risks_of_forward_only_logic(
    facts: ReviewFacts, limits: TeamLimits, bot: BotFacts
) -> Iterator[Risk]:
    """A forward-only change of logic: new rows follow the new rules, old rows the old ones."""
    whole = {item.model for item in facts.prod_plan.next_run} if facts.prod_plan else set()
    sentences = describe_old_rows(facts)
    for change in facts.changes:
        if change.change == "direct" and change.category == "forward_only" and not change.from_base:
            again = change.model in whole or change.kind in COMPUTED_WHOLE
            old_rows = sentences.get(change.model)
            yield make_risk(
                LOGIC_CHANGED_FORWARD_ONLY,
                f"The definition changes. This is a {change.kind} model: prod's next run computes "
                "the whole of it again, and past numbers change then."
                if again
                else f"The definition changes, and {old_rows}."
                if old_rows
                else "The definition changes and history is not computed again: old and new rows "
                "follow different rules.",
                "a data diff of the preview has been checked",
                model=change.model,
                path=change.path,
            )


@judges(ADDITIVE_CHANGE)
def find_risks_of_additive_changes(
    facts: ReviewFacts, limits: TeamLimits, bot: BotFacts
) -> Iterator[Risk]:
    """A non-breaking change of a query that leaves existing rows: readers keep their results.

    A changed statement around the query is judged itself; SQLMesh's category says nothing about it.
    """
    past = set(judge_past_numbers(facts).models)
    for change in facts.changes:
        of_query = change.change == "direct" and not change.statements_changed
        if not of_query or change.category != "non_breaking" or change.from_base:
            continue
        if change.model in past:
            continue  # `R06-past-numbers` says what differs
        added = [column.name for column in change.columns if column.before is None]
        yield make_risk(
            ADDITIVE_CHANGE,
            f"Non-breaking change; new columns: {quote_names(added)}."
            if added
            else "Non-breaking change: the model is built again, and no model that reads it is.",
            "nothing to do",
            model=change.model,
            path=change.path,
        )


@judges(METADATA_ONLY)
def find_risks_of_metadata_changes(
    facts: ReviewFacts, limits: TeamLimits, bot: BotFacts
) -> Iterator[Risk]:
    """Metadata changes: SQLMesh updates its records and the views, but no data."""
    in_runs = {f.model for f in facts.findings if f.rule == CHANGED_IN_RUNS}
    models = [c.model for c in facts.changes if c.change == "metadata"]
    names = [model for model in models if model not in in_runs]
    if names:
        yield make_risk(
            METADATA_ONLY,
            f"{count_noun(len(names), 'model')} {'changes' if len(names) == 1 else 'change'} in "
            f"metadata only ({quote_names(names)}).",
            "nothing to do",
        )


@judges(BASE_DRIFT)
def judge_risk_of_base_drift(
    facts: ReviewFacts, limits: TeamLimits, bot: BotFacts
) -> Iterator[Risk]:
    """Differences from the base branch are named and not judged."""
    # A removal has a finding of its own. (R04-model-removed)
    names = [c.model for c in facts.changes if c.from_base and c.change != "removed"]
    if names:
        yield make_risk(
            BASE_DRIFT,
            f"{count_noun(len(names), 'model')} differ because prod has not caught up with the "
            f"base branch ({quote_names(names)}).",
            PLANNED_FROM_BASE,
        )


# The team's policy itself: how this pull request changes it, and which entries have expired.


CHANGED = find_rule("policy-changed")
EXPIRED = find_rule("policy-expired")
# Each is a line of the comment; a completely new policy has hundreds.
MOST_CHANGES = 30
_READ = "the owner of the policy has read the change"


@judges(CHANGED)
def judge_risk_of_changed_policy(
    facts: ReviewFacts, limits: TeamLimits, bot: BotFacts
) -> Iterator[Risk]:
    """What would be judged differently after the merge; changes that loosen come first."""
    shown, rest = bot.policy_changes[:MOST_CHANGES], bot.policy_changes[MOST_CHANGES:]
    for change in shown:
        yield make_risk(
            CHANGED,
            f"{'This loosens the review' if change.loosens else 'The policy changes'} from the "
            f"merge on: {change.sentence}.",
            _READ,
            severity=None if change.loosens else "low",
            path=change.path,
            line=change.line,
            subject=change.sentence,
        )
    if rest:
        looser = any(change.loosens for change in rest)
        evidence = f"{count_noun(len(rest), 'more change')} of the policy."
        weight: Severity | None = None if looser else "low"
        yield make_risk(
            CHANGED, evidence, _READ, severity=weight, path=rest[0].path, subject="more"
        )


@judges(EXPIRED)
def judge_risk_of_expired_ignores(
    facts: ReviewFacts, limits: TeamLimits, bot: BotFacts
) -> Iterator[Risk]:
    """Ignores whose last day has passed."""
    weighing = bot.weighing
    for entry in weighing.policy.ignore:
        if entry.until >= weighing.today:
            continue
        rules = ", ".join(f"`{name}`" for name in entry.rule)
        yield make_risk(
            EXPIRED,
            f"Since {entry.until.isoformat()} {rules} {choose_is_or_are(len(entry.rule))} no "
            f"longer ignored ({entry.reason}).",
            "the entry is gone, or has a new day",
            severity=None if _touches_policy_entry(entry, facts, bot) else "info",
            path=entry.path,
            line=entry.line,
            subject=describe_policy_entry(entry),
        )


def _touches_policy_entry(entry: IgnoreEntry, facts: ReviewFacts, bot: BotFacts) -> bool:
    """Whether the change concerns a model or a file of the entry."""
    return any(bot.weighing.is_about(entry, change.model, change.path) for change in facts.changes)


RESTATED_AFTER_MERGE = find_rule("restated-after-merge")


@judges(RESTATED_AFTER_MERGE)
def find_risks_of_prod_restatements(
    facts: ReviewFacts, limits: TeamLimits, bot: BotFacts
) -> Iterator[Risk]:
    """Each recorded restatement; one that no longer holds is heavier: it stops a deployment."""
    for item in facts.prod_restatements:
        recorded = item.recorded
        off = f"`/sqlmesh restate {recorded.model} off`"
        request = (
            f"`@{recorded.by}` asks prod to build it again "
            f"{describe_range_of_restatement_document(recorded)}"
        )
        if item.problem is not None:
            yield make_risk(
                RESTATED_AFTER_MERGE,
                f"{request}, and that does not hold any more: {item.problem} A deployment refuses "
                "it.",
                f"an owner asks again, or it is taken back with {off}",
                severity="high",
                model=recorded.model,
                path=item.path,
            )
            continue
        yield make_risk(
            RESTATED_AFTER_MERGE,
            f"{request}, after the merge ({recorded.reason}). {_describe_work(item)}",
            f"the owners of these models agree, or it is taken back with {off}",
            model=recorded.model,
            path=item.path,
        )


def _describe_work(item: ProdRestatement) -> str:
    work = sum_planned_work(item.work)
    built = quote_names(one.model for one in item.work)
    hours = item.cost.executor_hours_mid if item.cost is not None else None
    cost = "" if hours is None else f", about {format_executor_time(hours)} of executor time"
    sentences = [
        f"That builds {count_noun(len(item.work), 'model')} again ({built}): "
        f"{count_noun(work.intervals, 'interval')}{cost}."
    ]
    if item.kept:
        one = len(item.kept) == 1
        sentences.append(
            f"{quote_names(item.kept)} {'reads' if one else 'read'} them and "
            f"{'keeps its' if one else 'keep their'} rows, because of `disable_restatement`."
        )
    if item.environments:
        sentences.append(f"It also clears data of {quote_names(item.environments)}.")
    return " ".join(sentences)
