"""Sentences of several forms of the report, and those about an apply's data.
The forms are comment, page, terminal and notice. An apply's data have a heading, one sentence, and
how columns changed.

Each sentence is written once, here. Python reads the common ones from `SENTENCES`, a template from
the global `sentences`. Words between backticks are code in both. Marks, such as bold, belong to the
form itself. The sentence about existing rows that change is composed from the known facts about
them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

from ci_bot.bot.report import words
from ci_bot.bot.report.markdown_text import SafeMarkdown, make_code_span, make_table_cell
from ci_bot.bot.report.model.changed_rows import read_past_numbers
from ci_bot.bot.report.words import list_names
from ci_bot.protocol.apply_report import AppliedModel, ColumnMatch, ModelAudit, Profile, TableDiff
from ci_bot.protocol.cost import count_days_between
from ci_bot.protocol.review_report import ChangedRows, PastNumbers, Report
from ci_bot.protocol.rules import quote_name


@dataclass(frozen=True)
class ReportViewSentences:
    """All these sentences, each by a name that says what it is about."""

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


SENTENCES = ReportViewSentences()

BASELINES = {
    "state": SENTENCES.compared_with_prod,
    "base-branch": SENTENCES.compared_with_base,
    "empty": SENTENCES.compared_with_nothing,
}


def list_view_sentences_for_templates() -> dict[str, SafeMarkdown]:
    """Returns the sentences as Markdown of our own, which a template prints as it is."""
    return {name: SafeMarkdown(text) for name, text in asdict(SENTENCES).items()}


# How many rows of a seed are new and gone, quoted in full.
_OF_SEEDS = ("It gets ", "It loses ")


def describe_past_numbers(report: Report) -> str:
    """Says what is computed differently, how many models read that, and how many are rebuilt."""
    past = read_past_numbers(report)
    change = "Past numbers change" if past.certain else "Past numbers may change"
    return (
        f"{change}: {_describe_recomputed_model(report)}{_describe_models_that_read_change(past)}."
    )


def _describe_recomputed_model(report: Report) -> str:
    past = read_past_numbers(report)
    if len(past.changed) > 1:
        return f"{list_names(past.models)} are computed differently"
    [rows] = past.changed
    model, history = quote_name(rows.model), _describe_history(report, rows.model)
    if rows.columns:
        return _describe_recomputed_columns(report, rows)
    if rows.rows:
        of_a_seed = rows.why is not None and rows.why.startswith(_OF_SEEDS)
        reason = (rows.why or "").removeprefix("It ").rstrip(".")
        return f"{model} {reason if of_a_seed else f'gets other rows{history}'}"
    if rows.why:
        return f"what changes in {model} is not known"
    return f"{model} is computed again{history}"


def _describe_recomputed_columns(report: Report, rows: ChangedRows) -> str:
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


def _describe_models_that_read_change(past: PastNumbers) -> str:
    """Names models that read what changes, and models that are rebuilt: these can differ."""
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


# One model's data diff in the form that readers need. A diff of no rows is no match, and says so.


DiffState = Literal["same", "empty", "suspect", "differs"]


class DiffView:
    """The data diff of one model; it has all fields of the contract and more."""

    def __init__(self, diff: TableDiff) -> None:
        self._diff = diff

    def __getattr__(self, name: str) -> Any:
        return getattr(self._diff, name)

    @property
    def state(self) -> DiffState:
        """How both tables compare.

        `same` needs rows on both sides, unique keys, and equality in all that prod has; a new
        column does not count against it.
        """
        diff = self._diff
        if not diff.rows_prod and not diff.rows_pr:
            return "empty"
        if diff.null_keys or diff.duplicate_keys:
            return "suspect"
        counts = {diff.rows_prod, diff.rows_pr, diff.matched, diff.full_match}
        same = len(counts) == 1 and diff.only_prod == 0 and diff.only_pr == 0
        kept = not (diff.schema_.removed or diff.schema_.changed)
        return "same" if same and kept else "differs"

    @property
    def key_fault(self) -> str:
        """Why its rows cannot be paired, in a few words: duplicate keys, or rows without a key."""
        return "keys are not unique" if self._diff.duplicate_keys else "rows without a key"

    @property
    def same_schema(self) -> bool:
        schema = self._diff.schema_
        return not (schema.added or schema.removed or schema.changed)

    @property
    def unequal_columns(self) -> list[ColumnMatch]:
        """The columns that differ in any row, the worst first."""
        return sorted(
            (column for column in self._diff.columns if column.match_rate != 1.0),
            key=lambda column: (column.match_rate or 0.0, column.name),
        )

    @property
    def changed_share(self) -> float | None:
        """The share of rows with the same key that differ in a column; None without such rows."""
        diff = self._diff
        if not diff.matched or diff.full_match is None:
            return None
        return (diff.matched - diff.full_match) / diff.matched

    @property
    def coverage(self) -> tuple[int, int] | None:
        """The number of days compared and of days that prod has; None if not known in days."""
        part, whole = self._diff.window, self._diff.window_of
        if part is None or whole is None:
            return None
        compared, all_days = (count_days_between(one.start, one.end) for one in (part, whole))
        if compared is None or not all_days:
            return None
        return round(compared), round(all_days)


Data = Literal["unseen", "nothing", "suspect", "differs", "part", "same"]

HEADINGS: dict[Data, str] = {
    "unseen": "the data was not checked",
    "nothing": "nothing to compare",
    "suspect": SENTENCES.rows_unpaired,
    "differs": "the numbers differ from `prod`",
    "part": "the same rows as `prod`, where both were compared",
    "same": "the same rows as `prod`",
}

_COLUMNS = 2
_NARROW = 24
_PLAIN = re.compile(r"[a-z0-9_]+(?:\.[a-z0-9_]+)+", re.ASCII)
_BAR = 8
_DIGITS = 4


def describe_main_difference(main: DiffView) -> SafeMarkdown:
    """Says what a reader should know first about this model, which differs."""
    model = make_code_span(main.model)
    if main.state == "suspect":
        return SafeMarkdown(_describe_repeated_keys(main, model))
    rows = _describe_gone_and_new_rows(main)
    if not main.matched:
        return SafeMarkdown(f"No row of {model} has a key that `prod` has; {rows}")
    if main.full_match is None:
        return SafeMarkdown(f"The columns of {model} could not be compared; {rows}")
    if main.changed_share:
        changed = words.format_percent(main.changed_share)
        names, many = _describe_changed_columns(main.unequal_columns)
        verb = "change" if many else "changes"
        return SafeMarkdown(f"{names} {verb} in {changed} of the rows of {model}; {rows}")
    if main.only_prod or main.only_pr:
        return SafeMarkdown(f"{model}: {rows}; all other rows are equal")
    schema = main.schema_
    gone = [*schema.removed, *schema.changed]
    what = "is gone or of another type" if len(gone) == 1 else "are gone or of another type"
    names = _list_column_names_for_sentence(gone)
    return SafeMarkdown(f"{names} {what} in {model}; all rows are equal in the other columns")


def _describe_repeated_keys(main: DiffView, model: str) -> str:
    twice, absent = main.duplicate_keys or 0, main.null_keys or 0
    rows = f"{words.format_count(absent, 'row')} {'has' if absent == 1 else 'have'} no key"
    if not twice:
        return f"{model}: {rows}"
    keys = f"{words.format_count(twice, 'key')} of {model} {'is' if twice == 1 else 'are'}"
    return f"{keys} on more than one row" + (f", and {rows}" if absent else "")


def describe_all_same_in_view(compared: Sequence[DiffView]) -> SafeMarkdown:
    """Says that nothing differs in any of these, and for how many rows."""
    rows = sum(diff.rows_prod or 0 for diff in compared)
    where = (
        make_code_span(compared[0].model)
        if len(compared) == 1
        else f"{words.format_number(len(compared))} models"
    )
    return SafeMarkdown(f"0 of {words.format_count(rows, 'row')} differ from `prod` in {where}")


def _describe_gone_and_new_rows(diff: DiffView) -> str:
    gone, new = diff.only_prod or 0, diff.only_pr or 0
    if not gone and not new:
        return "no row is gone or new"
    parts = [
        f"{_choose_verb(gone)} gone" if gone else "no row is gone",
        f"{words.format_number(new)} new",
    ]
    if not new:
        parts[1] = "none is new"
    return f"{parts[0]}, {parts[1]}"


def _choose_verb(number: int) -> str:
    return f"{words.format_count(number, 'row')} {'is' if number == 1 else 'are'}"


def _describe_changed_columns(columns: Sequence[ColumnMatch]) -> tuple[str, bool]:
    names = [column.name for column in columns]
    return _list_column_names_for_sentence(names), len(names) > 1


def _list_column_names_for_sentence(names: Sequence[str]) -> str:
    shown = ", ".join(make_code_span(name) for name in names[:_COLUMNS])
    rest = len(names) - _COLUMNS
    return f"{shown} and {words.format_count(rest, 'more column')}" if rest > 0 else shown


def wrap_model_name_in_view(model: str) -> SafeMarkdown:
    """Renders a model's name for a narrow cell: a long name of plain words gets two lines."""
    if len(model) <= _NARROW or not _PLAIN.fullmatch(model):
        return make_table_cell(model)
    schema, dot, rest = model.rpartition(".")
    return SafeMarkdown(f"{make_table_cell(schema + dot)}<br>{make_table_cell(rest)}")


def describe_changed_columns_of_diff(diff: DiffView) -> SafeMarkdown:
    """Lists the columns that changed, one line for each kind, and how far the comparison goes."""
    parts = [diff.key_fault] if diff.state == "suspect" else []
    schema = diff.schema_
    lists = (
        (
            "changed: ",
            [column.name for column in diff.unequal_columns if column.match_rate is not None],
        ),
        ("new: ", schema.added),
        ("gone: ", schema.removed),
        ("another type: ", schema.changed),
    )
    for label, names in lists:
        if names:
            listed = ", ".join(make_table_cell(name) for name in names[:3])
            parts.append(f"{label}{listed}{words.and_more(names, 3)}")
    if diff.window and not diff.complete:
        parts.append(_describe_compared_days(diff.coverage))
    return SafeMarkdown("<br>".join(parts))


def render_row_bar(diff: DiffView) -> SafeMarkdown:
    """Renders a bar of the rows that changed, with how many there are, how many gone and new."""
    if diff.state == "empty":
        return SafeMarkdown(SENTENCES.no_rows)
    gone, new = map(words.format_optional_count, (diff.only_prod, diff.only_pr))
    counts = f"{gone} gone, {new} new"
    total = "–" if diff.rows_pr is None else words.format_count(diff.rows_pr, "row")
    of = "<br>of" if diff.changed_share else " of"
    return SafeMarkdown(f"{_render_bar(diff)}{of} {total}<br>{counts}")


def _render_bar(diff: DiffView) -> str:
    if diff.full_match is None:
        return "not known,"
    if not diff.matched:
        return "no key in common,"
    share = diff.changed_share or 0.0
    if not share:
        return "none"
    bar = words.render_text_bar(round(share * 1_000), 1_000, _BAR)
    if not bar.startswith("█"):
        bar = f"▏{bar[1:]}"
    shown = words.format_percent(share).replace(" ", "\u00a0")
    return f"`{bar}` {shown}"


def _describe_compared_days(days: tuple[int, int] | None) -> str:
    if days is None or days[0] >= days[1]:
        return "not all of `prod`'s intervals"
    return f"compared: {words.format_number(days[0])} of {words.format_count(days[1], 'day')}"


def describe_value_change(column: ColumnMatch, rows: tuple[int, int]) -> SafeMarkdown:
    """Says how a column's values changed, from aggregates of both sides; a dash if unknown.

    Args:
        rows: The numbers of compared rows of prod and of the PR.
    """
    old, new = column.prod, column.pr
    if old is None or new is None:
        return SafeMarkdown("–")
    parts = []
    for name, before, after in (
        ("mean", _shorten_measured_number(old.mean), _shorten_measured_number(new.mean)),
        ("min", _format_extreme(old.min), _format_extreme(new.min)),
        ("max", _format_extreme(old.max), _format_extreme(new.max)),
    ):
        if before != after:
            parts.append(f"{name} {before} → {after}")
    if old.nulls != new.nulls:
        before, after = (
            words.format_percent(_get_ratio(p.nulls, n))
            for p, n in zip((old, new), rows, strict=True)
        )
        parts.append(f"null {before} → {after}")
    if old.distinct != new.distinct and None not in (old.distinct, new.distinct):
        parts.append(
            f"about {_format_distinct_count(old)} → {_format_distinct_count(new)} distinct values"
        )
    return SafeMarkdown(" · ".join(parts) or "other values, spread as before")


def _get_ratio(part: int, whole: int) -> float:
    return min(part / whole, 1.0) if whole else 0.0


def _format_distinct_count(profile: Profile) -> str:
    return words.format_number(profile.distinct or 0)


def _shorten_measured_number(value: float | None) -> str:
    """Formats a number with few digits: 12.35, 1,204, 0.00012."""
    if value is None:
        return "none"
    if abs(value) >= 10**_DIGITS or value == int(value):
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.3g}"  # noqa: PLR2004 - digits
    return f"{value:,.{_DIGITS}g}"


def _format_extreme(text: str | None) -> str:
    """Formats a smallest or largest value: a number shortened, a time as it is."""
    if text is None:
        return "none"
    try:
        number = Decimal(text)
    except InvalidOperation:
        return make_table_cell(text, 40)
    return (
        _shorten_measured_number(float(number)) if number.is_finite() else make_table_cell(text, 40)
    )


def list_failed_audits(models: Sequence[AppliedModel], *, blocking: bool) -> list[SafeMarkdown]:
    """Lists the failed audits: name, model, failed rows, and whether prod has as many."""
    return [
        SafeMarkdown(
            f"{make_table_cell(audit.audit)} on {make_table_cell(model.model)}"
            f"{_describe_audit(audit)}"
        )
        for model in models
        for audit in model.audits
        if audit.status == "failed" and audit.blocking == blocking
    ]


def _describe_audit(audit: ModelAudit) -> str:
    rows = "" if audit.failed_rows is None else f", {words.format_count(audit.failed_rows, 'row')}"
    if audit.prod_rows is None:
        return f"{rows} (`prod` could not be asked)" if audit.prod_unknown_because else rows
    same = audit.prod_rows == audit.failed_rows
    return f"{rows} ({'same' if same else words.format_count(audit.prod_rows, 'row')} in `prod`)"
