"""The plan validation matrix: what each kind of change asks of a reviewer.

Breaking changes are R06, destructive ones R04 and R05. Here are the lighter rows: logic, additive
and metadata changes, and the base's own changes, which are not this pull request's doing.
"""

from __future__ import annotations

from collections.abc import Iterator

from ci_bot.bot.decision.given import BotFacts, Limits
from ci_bot.bot.decision.registry import judges
from ci_bot.bot.decision.risks import counted, listed, risk
from ci_bot.contracts.documents.judged_rows import judge_past_numbers
from ci_bot.contracts.documents.plan import COMPUTED_WHOLE
from ci_bot.contracts.documents.report import ReviewFacts, Risk
from ci_bot.contracts.rules import rule

ADDITIVE_CHANGE = rule("additive-change")
BASE_DRIFT = rule("base-drift")
LOGIC_CHANGED_FORWARD_ONLY = rule("logic-changed-forward-only")
METADATA_ONLY = rule("metadata-only")


@judges(LOGIC_CHANGED_FORWARD_ONLY)
def logic(facts: ReviewFacts, limits: Limits, bot: BotFacts) -> Iterator[Risk]:
    """A forward-only change of logic: new rows follow the new rules, old rows the old ones."""
    whole = {item.model for item in facts.prod_plan.next_run} if facts.prod_plan else set()
    for change in facts.changes:
        if change.change == "direct" and change.category == "forward_only" and not change.from_base:
            again = change.model in whole or change.kind in COMPUTED_WHOLE
            yield risk(
                LOGIC_CHANGED_FORWARD_ONLY,
                f"The definition changes. This is a {change.kind} model: prod's next run computes "
                "the whole of it again, and past numbers change then."
                if again
                else "The definition changes and history is not computed again: old and new rows "
                "follow different rules.",
                "a data diff of the preview has been looked at",
                model=change.model,
                path=change.path,
            )


@judges(ADDITIVE_CHANGE)
def additive(facts: ReviewFacts, limits: Limits, bot: BotFacts) -> Iterator[Risk]:
    """A non-breaking change of a query that leaves existing rows: readers keep their results.

    What a changed statement around the query does is judged by itself; SQLMesh's category says
    nothing of it.
    """
    past = set(judge_past_numbers(facts).models)
    for change in facts.changes:
        of_query = change.change == "direct" and not change.statements_changed
        if not of_query or change.category != "non_breaking" or change.from_base:
            continue
        if change.model in past:
            continue  # `R06-past-numbers` says what differs
        added = [column.name for column in change.columns if column.before is None]
        yield risk(
            ADDITIVE_CHANGE,
            f"Non-breaking change; new columns: {listed(added)}."
            if added
            else "Non-breaking change: the model is built again, and no model that reads it is.",
            "nothing to do",
            model=change.model,
            path=change.path,
        )


@judges(METADATA_ONLY)
def metadata(facts: ReviewFacts, limits: Limits, bot: BotFacts) -> Iterator[Risk]:
    """Metadata: SQLMesh updates its records and the views, and touches no data."""
    names = [c.model for c in facts.changes if c.change == "metadata"]
    if names:
        yield risk(
            METADATA_ONLY,
            f"{counted(len(names), 'model')} {'changes' if len(names) == 1 else 'change'} in "
            f"metadata only ({listed(names)}).",
            "nothing to do",
        )


@judges(BASE_DRIFT)
def base_drift(facts: ReviewFacts, limits: Limits, bot: BotFacts) -> Iterator[Risk]:
    """Differences that come from the base branch are named and not judged."""
    # A removal has a finding of its own. (R04-model-removed)
    names = [c.model for c in facts.changes if c.from_base and c.change != "removed"]
    if names:
        yield risk(
            BASE_DRIFT,
            f"{counted(len(names), 'model')} differ because prod has not caught up with the base "
            f"branch ({listed(names)}).",
            "prod is planned from the base branch",
        )
