"""Sentences that more than one form of the report says: comment, page, terminal, notice.

Each stands here once. Python reads it from `SENTENCES`, a template from the global `sentences`.
Words between backticks are code in both. Marks, such as bold, are of the form itself. The sentence
about existing rows that come out differently is put together of what is known of them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ci_bot.bot.report.model import words
from ci_bot.bot.report.model.markdown_text import SafeMarkdown
from ci_bot.bot.report.model.words import list_names, quote_name
from ci_bot.protocol.changed_rows import read_past_numbers
from ci_bot.protocol.review_report import ChangedRows, PastNumbers, Report


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


# How many rows of a seed come and go is said in full.
_OF_SEEDS = ("It gets ", "It loses ")


def describe_past_numbers(report: Report) -> str:
    """What is computed differently, how many models read that, and how many are rebuilt."""
    past = read_past_numbers(report)
    change = "Past numbers change" if past.certain else "Past numbers may change"
    return f"{change}: {_describe_change(report)}{_describe_readers(past)}."


def _describe_change(report: Report) -> str:
    past = read_past_numbers(report)
    if len(past.changed) > 1:
        return f"{list_names(past.models)} are computed differently"
    [rows] = past.changed
    model, history = quote_name(rows.model), _describe_history(report, rows.model)
    if rows.columns:
        return _describe_columns(report, rows)
    if rows.rows:
        of_a_seed = rows.why is not None and rows.why.startswith(_OF_SEEDS)
        reason = (rows.why or "").removeprefix("It ").rstrip(".")
        return f"{model} {reason if of_a_seed else f'gets other rows{history}'}"
    if rows.why:
        return f"what changes in {model} is not known"
    return f"{model} is computed again{history}"


def _describe_columns(report: Report, rows: ChangedRows) -> str:
    one, where = len(rows.columns) == 1, f"{list_names(rows.columns)} in {quote_name(rows.model)}"
    if any(change.model == rows.model and change.kind == "SEED" for change in report.changes):
        return f"{where} {'holds' if one else 'hold'} other values"
    what = (
        f"{where} {'is' if one else 'are'} computed "
        f"differently{_describe_history(report, rows.model)}"
    )
    return f"{what}, with other rows" if rows.rows else what


def _describe_history(report: Report, model: str) -> str:
    plan = report.prod_plan
    built = plan.full_backfill if plan else []
    whole = any(item.model == model and item.action == "incremental" for item in built)
    return " for all of its history" if whole else ""


def _describe_readers(past: PastNumbers) -> str:
    """Models that read what changes, and models that are rebuilt: the two are not the same."""
    more = past.rebuilt - past.readers - past.maybe_readers
    if not past.readers_known:
        return f"; {_describe_rebuilt(past.rebuilt)}" if past.rebuilt else ""
    if not (past.readers or past.maybe_readers):
        none = "; no other model reads what changes"
        return f"{none}, and {_describe_rebuilt(more)} anyway" if more > 0 else none
    if not past.rebuilt and past.readers:
        return f"; {_describe_read_models(past)}, and no other model is rebuilt"
    return f"; {_describe_read_models(past)}" + (
        f", and {_describe_rebuilt(more, ' more')} anyway" if more > 0 else ""
    )


def _describe_read_models(past: PastNumbers) -> str:
    if not past.readers:
        return f"{words.format_count(past.maybe_readers, 'other model')} may read what changes"
    read = "reads" if past.readers == 1 else "read"
    text = f"{words.format_count(past.readers, 'other model')} {read} what changes"
    return (
        f"{text}, {words.format_number(past.maybe_readers)} more may"
        if past.maybe_readers
        else text
    )


def _describe_rebuilt(number: int, more: str = "") -> str:
    noun = "model" if number == 1 else "models"
    return f"{words.format_number(number)}{more} {noun} {'is' if number == 1 else 'are'} rebuilt"
