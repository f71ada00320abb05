"""R01 to R05: whether there is a plan at all, and what it takes away."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from ci_bot.bot.decision.blame import reads_nothing_of
from ci_bot.bot.decision.given import BotFacts, Limits
from ci_bot.bot.decision.risks import counted, listed, risk, short_name
from ci_bot.contracts.documents.plan import Change, ColumnChange
from ci_bot.contracts.documents.report import ReviewFacts, Risk

MASS_REMOVAL = 5
# The rules that stand for a failure of the plan itself.
FAILURE_RISKS = frozenset({"R01-load-failed", "R01-plan-failed"})
_FQN = re.compile(r'(?:"[^"\n]+"|`[^`\n]+`)(?:\.(?:"[^"\n]+"|`[^`\n]+`))+')
_DESTRUCTIVE = re.compile(r"destructive change to a forward-only", re.IGNORECASE)


def plan_failed(facts: ReviewFacts, limits: Limits, bot: BotFacts) -> Iterator[Risk]:
    """R01: there is no plan."""
    failure = facts.failure
    if failure is None:
        return
    model = failure.model or _blamed(failure.message, bot.changed_files or ())
    loading = failure.stage in {"configuration", "load"}
    yield risk(
        "R01-load-failed" if loading else "R01-plan-failed",
        "blocker",
        f"Stage {failure.stage}: {failure.message}",
        failure.hint or ("the project loads" if loading else "SQLMesh accepts the plan"),
        model=model,
        path=failure.path,
        line=failure.line,
    )


def base_broken(facts: ReviewFacts, limits: Limits, bot: BotFacts) -> Iterator[Risk]:
    """R01: the base branch does not load. That is not the pull request's doing, whatever it is."""
    if not facts.base_failures or facts.failure is not None:
        return
    first = facts.base_failures[0]
    place = f"`{first.path}`" + (f" line {first.line}" if first.line else "") if first.path else ""
    where = f" ({place})" if place else ""
    why = f"The base branch does not load here{where}: {_gist(first.message)}"
    if facts.project.models:
        told = "With this pull request it does. There was nothing to compare with: all is new."
    else:
        told = "This pull request is not why, and nothing of it could be planned or checked."
    harmless = not facts.project.models and reads_nothing_of(bot.changed_files)
    yield risk(
        "R01-base-broken",
        "medium" if harmless else "high",
        f"{why} {told}",
        "the base branch loads here",
        path=first.path,
        line=first.line,
    )


def _gist(message: str) -> str:
    """The part of a message that says what is wrong, as one sentence."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    # SQLMesh says in the first line which file, and in the next what of it.
    found = lines[1] if len(lines) > 1 and lines[0].endswith(":") else (lines or [""])[0]
    return found if found.endswith((".", "!", "?")) else f"{found}."


def _blamed(message: str, changed_files: tuple[str, ...]) -> str | None:
    """The model that an error message names; of several the one whose file was changed."""
    named = [match.group(0) for match in _FQN.finditer(message)]
    stems = {PurePosixPath(path).stem.lower() for path in changed_files}
    changed = [name for name in named if name.strip('"`').split(".")[-1].strip('"`') in stems]
    return next(iter(changed or named), None)


def uncategorized(facts: ReviewFacts, limits: Limits, bot: BotFacts) -> Iterator[Risk]:
    """R01: a changed model without a category cannot be applied by anybody but a person."""
    for change in facts.changes:
        if change.category == "uncategorized" and change.change in {"direct", "added"}:
            yield risk(
                "R01-uncategorized",
                "blocker",
                "SQLMesh gave this change no category, so the plan cannot be applied.",
                "plan.auto_categorize_changes is on for this kind, or a person plans and chooses",
                model=change.model,
                path=change.path,
            )


def lint_errors(facts: ReviewFacts, limits: Limits, bot: BotFacts) -> Iterator[Risk]:
    """R01: the project's own linter says no; its warnings stay notes."""
    lint = facts.checks.lint
    for finding in lint.findings:
        error = finding.severity in {"blocker", "high"}
        yield risk(
            "R01-lint-error" if error else "lint-warning",
            "blocker" if error else "low",
            f"{finding.rule}: {finding.evidence}",
            finding.clears_when or "the linter is satisfied",
            model=finding.model,
            path=finding.path,
            line=finding.line,
        )
    if lint.status == "failed" and not any(
        finding.severity in {"blocker", "high"} for finding in lint.findings
    ):
        yield risk(
            "R01-lint-error",
            "blocker",
            f"The project's linter reports {counted(lint.errors, 'error')}.",
            "`sqlmesh lint` passes",
        )


def audits_fail(facts: ReviewFacts, limits: Limits, bot: BotFacts) -> Iterator[Risk]:
    """R02: a blocking audit fails. A review runs none; an apply hands its result in here."""
    audits = facts.checks.audits
    if audits.status == "failed":
        yield risk(
            "R02-audit-fails",
            "blocker" if audits.blocking else "medium",
            f"{counted(audits.blocking, 'blocking audit')} and "
            f"{counted(audits.non_blocking, 'other audit')} failed.",
            "the audits pass",
        )


def moved(facts: ReviewFacts, limits: Limits, bot: BotFacts) -> Iterator[Risk]:
    """R03: the pull request is not what was planned any more, or cannot be merged."""
    if bot.moved is not None:
        yield risk(
            "R03-stale",
            "blocker",
            f"The {bot.moved} of the pull request moved after this plan was made.",
            "the review runs again",
        )
    if bot.conflict:
        yield risk(
            "R03-conflict",
            "blocker",
            "The pull request conflicts with its base, so there is no merged project to plan.",
            "the conflict is resolved",
        )


def removals(facts: ReviewFacts, limits: Limits, bot: BotFacts) -> Iterator[Risk]:
    """R04: models that go away, one by one or nearly all at once."""
    removed = [c for c in facts.changes if c.change == "removed" and not c.from_base]
    added = sum(c.change == "added" for c in facts.changes)
    before = facts.project.models - added + len(removed)
    if len(removed) >= MASS_REMOVAL and 2 * len(removed) >= before:
        yield risk(
            "R04-mass-removal",
            "high",
            f"{counted(len(removed), 'model')} of {before} go away, {counted(added, 'model')} are "
            "new: a changed catalog, project key, ignore pattern or directory looks like this.",
            "someone confirms that all of these models are meant to go",
        )
        removed = [change for change in removed if change.readers]
    for change in removed:
        yield _removal(change)


def _removal(change: Change) -> Risk:
    if change.readers:
        return risk(
            "R04-model-removed",
            "blocker",
            f"The model goes away, and {listed(change.readers)} still read it.",
            "no model reads it any more, or it stays",
            model=change.model,
            path=change.path,
        )
    return risk(
        "R04-model-removed",
        "high",
        "The model goes away. No model of the project reads it; readers outside are not known.",
        "its owner confirms that nobody outside the project reads it",
        model=change.model,
        path=change.path,
    )


def columns(facts: ReviewFacts, limits: Limits, bot: BotFacts) -> Iterator[Risk]:
    """R04: columns that are dropped or get another type."""
    for change in facts.changes:
        if change.change == "removed" or change.from_base:
            continue
        dropped = [column for column in change.columns if column.after is None]
        read = [column for column in dropped if column.readers]
        unread = [column for column in dropped if not column.readers]
        if read:
            yield _dropped_and_read(change, read)
        if unread:
            yield _dropped(change, unread)
        # Narrowing is told apart from widening where the types are known as types: in the worker.
        # It arrives as the finding `column-retyped`.


def _dropped_and_read(change: Change, read: list[ColumnChange]) -> Risk:
    readers = {reader for column in read for reader in column.readers}
    return risk(
        "R04-column-dropped",
        "blocker",
        f"Drops {listed(c.name for c in read)}, still read by {listed(readers)}.",
        "the readers no longer use the columns, or the columns stay",
        model=change.model,
        path=change.path,
    )


def _dropped(change: Change, unread: list[ColumnChange]) -> Risk:
    own = change.change == "direct"
    return risk(
        "R04-column-dropped",
        # A model that only follows the one above it is judged there.
        "high" if own else "low",
        f"Drops {listed(c.name for c in unread)}. No model of the project reads them; "
        "readers outside are not known.",
        "the owner confirms that nobody outside the project reads them",
        model=change.model,
        path=change.path,
    )


def forward_only_schema(facts: ReviewFacts, limits: Limits, bot: BotFacts) -> Iterator[Risk]:
    """R05: a merge would alter a production table in place, or SQLMesh refuses to."""
    known = {
        short_name(f.model)
        for f in facts.findings
        if f.rule == "forward-only-destructive" and f.model is not None
    }
    prod = facts.prod_plan
    if prod is not None:
        for model in prod.forward_only_schema_changes:
            if short_name(model) not in known:
                yield risk(
                    "R05-forward-only-schema",
                    "high",
                    "A merge alters the schema of this forward-only table in place; its history "
                    "is not computed again.",
                    "its owner confirms the new columns and what history will hold",
                    model=model,
                )
    for text in (facts.failure and facts.failure.message, prod and prod.failure):
        if text and _DESTRUCTIVE.search(text) and not known:
            yield risk(
                "R05-forward-only-destructive",
                "blocker",
                "SQLMesh refuses a destructive change of a forward-only model.",
                "the column stays, or the change is allowed on purpose (input `allow-destructive`)",
            )
            return


def prod_plan(facts: ReviewFacts, limits: Limits, bot: BotFacts) -> Iterator[Risk]:
    """R01 on the plan that a merge would cause in prod, and the gaps that it would meet."""
    plan = facts.prod_plan
    if plan is None:
        return
    if plan.would_fail and facts.failure is None:
        yield risk(
            "R01-prod-plan-fails",
            "blocker",
            f"Planned against prod, the same head fails: {plan.failure or 'no reason given'}",
            "the plan against prod succeeds",
        )
    if plan.gaps:
        yield risk(
            "prod-gaps",
            "medium",
            f"Prod lacks intervals inside the history of {listed(gap.model for gap in plan.gaps)}.",
            "prod's gaps are filled (`sqlmesh run`), or known and accepted",
        )
