"""Sentences that more than one form of the report says: comment, page, terminal, notice.

Each stands here once. Python reads it from `SENTENCES`, a template from the global `sentences`.
Words between backticks are code in both. Marks, such as bold, are of the form itself.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ci_bot.bot.report.model.markdown_text import SafeMarkdown


@dataclass(frozen=True)
class ReportSentences:
    """All of them, by a name that says what they are about."""

    # What a review was compared with, by the report's baseline.
    compared_with_prod: str = "compared with `prod`"
    compared_with_base: str = "compared with the base branch, without state"
    compared_with_nothing: str = "no `prod` was found: everything counts as new"

    base_is_why: str = (
        "This pull request is not why; nothing of it could be planned or checked until that is "
        "fixed."
    )
    fork_without_access: str = (
        "This pull request comes from a fork, so the report was made without access to the "
        "warehouse or the state."
    )
    fork_never_applied: str = "Plans of a fork are reviewed, never applied."
    needs_prods_state: str = (
        "It was compared with the base branch; review it with prod's state first."
    )
    no_problem: str = "No rule found a problem."
    message_below: str = "The message below says what is wrong."
    fails_because: str = "Fails because of it:"
    revoke_now: str = "Revoke it now"
    revoke_rest: str = (
        "at its issuer: the git history keeps it. Then read it from the environment or a secret "
        "store."
    )
    prod_plan_fails: str = "The plan for `prod` would fail"
    prod_builds_later: str = "`prod` builds after the merge"
    prod_stays: str = "this (`prod` stays as it is):"

    aside_and_why: str = "Findings that do not count, and why"
    nothing_lighter: str = "The policy makes nothing lighter here."
    statements_around: str = "Statements around the environment"
    on_generated_rows: str = "What the changed queries give on generated rows"
    readers_of_change: str = "What reads the columns and rows that change"
    altered_in_place: str = "Altered in place, because the change is forward-only"
    holds_plan: str = "holds this plan, with all data"
    after_merge: str = "in prod after the merge"
    known_readers: str = "no model of the project is known to read"
    from_base: str = "from the base branch"
    apply_stages: str = "What an apply does"

    decision_with_data: str = "Decision with this data:"
    half_built: str = "May be half built"
    other_plan: str = "How the current plan differs from the reviewed one"
    rows_unpaired: str = "rows cannot be paired"
    no_rows: str = "no rows on either side"
    cleanup_incomplete: str = "the cleanup is incomplete"


SENTENCES = ReportSentences()

BASELINES = {
    "state": SENTENCES.compared_with_prod,
    "base-branch": SENTENCES.compared_with_base,
    "empty": SENTENCES.compared_with_nothing,
}


def list_for_templates() -> dict[str, SafeMarkdown]:
    """The same as Markdown of our own, which a template prints as it stands."""
    return {name: SafeMarkdown(text) for name, text in asdict(SENTENCES).items()}
