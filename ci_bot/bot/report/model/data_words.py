"""What the data of an apply says, in words: the heading, one sentence, and how columns changed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

from ci_bot.bot.report.model import words
from ci_bot.bot.report.model.markdown_text import SafeMarkdown, make_code_span, make_table_cell
from ci_bot.bot.report.model.sentences import SENTENCES
from ci_bot.protocol.apply_report import AppliedModel, ColumnMatch, ModelAudit, Profile, TableDiff
from ci_bot.protocol.cost import count_days_between

# One model's data diff as its readers ask for it. A diff of nothing is no match, and says so.


DiffState = Literal["same", "empty", "suspect", "differs"]


class DiffView:
    """Fields of the contract are read through."""

    def __init__(self, diff: TableDiff) -> None:
        self._diff = diff

    def __getattr__(self, name: str) -> Any:
        return getattr(self._diff, name)

    @property
    def state(self) -> DiffState:
        """`same` needs rows on both sides, unique keys, and equality in all that prod has; a column
        that is new takes nothing away from it."""
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
        """Why its rows cannot be paired, in a few words: a row without a key is no second one."""
        return "keys are not unique" if self._diff.duplicate_keys else "rows without a key"

    @property
    def same_schema(self) -> bool:
        schema = self._diff.schema_
        return not (schema.added or schema.removed or schema.changed)

    @property
    def unequal_columns(self) -> list[ColumnMatch]:
        """The columns that differ somewhere, worst first."""
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
        """Days compared, and days that prod has; None if that is not known in days."""
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
    """What the one model shows that a reader should know first; it differs."""
    model = make_code_span(main.model)
    if main.state == "suspect":
        return SafeMarkdown(_describe_keys(main, model))
    rows = _describe_rows(main)
    if not main.matched:
        return SafeMarkdown(f"No row of {model} has a key that `prod` has; {rows}")
    if main.full_match is None:
        return SafeMarkdown(f"The columns of {model} could not be compared; {rows}")
    if main.changed_share:
        changed = words.format_percent(main.changed_share)
        names, many = _describe_columns(main.unequal_columns)
        verb = "change" if many else "changes"
        return SafeMarkdown(f"{names} {verb} in {changed} of the rows of {model}; {rows}")
    if main.only_prod or main.only_pr:
        return SafeMarkdown(f"{model}: {rows}; all other rows are equal")
    schema = main.schema_
    gone = [*schema.removed, *schema.changed]
    what = "is gone or of another type" if len(gone) == 1 else "are gone or of another type"
    names = _list_names(gone)
    return SafeMarkdown(f"{names} {what} in {model}; all rows are equal in the other columns")


def _describe_keys(main: DiffView, model: str) -> str:
    twice, absent = main.duplicate_keys or 0, main.null_keys or 0
    rows = f"{words.format_count(absent, 'row')} {'has' if absent == 1 else 'have'} no key"
    if not twice:
        return f"{model}: {rows}"
    keys = f"{words.format_count(twice, 'key')} of {model} {'is' if twice == 1 else 'are'}"
    return f"{keys} on more than one row" + (f", and {rows}" if absent else "")


def describe_all_same(compared: Sequence[DiffView]) -> SafeMarkdown:
    """That nothing differs in any of these, and how far that goes."""
    rows = sum(diff.rows_prod or 0 for diff in compared)
    where = (
        make_code_span(compared[0].model)
        if len(compared) == 1
        else f"{words.format_number(len(compared))} models"
    )
    return SafeMarkdown(f"0 of {words.format_count(rows, 'row')} differ from `prod` in {where}")


def _describe_rows(diff: DiffView) -> str:
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


def _describe_columns(columns: Sequence[ColumnMatch]) -> tuple[str, bool]:
    names = [column.name for column in columns]
    return _list_names(names), len(names) > 1


def _list_names(names: Sequence[str]) -> str:
    shown = ", ".join(make_code_span(name) for name in names[:_COLUMNS])
    rest = len(names) - _COLUMNS
    return f"{shown} and {words.format_count(rest, 'more column')}" if rest > 0 else shown


def wrap_model_name(model: str) -> SafeMarkdown:
    """A model's name in a narrow cell: a long one of plain words on two lines."""
    if len(model) <= _NARROW or not _PLAIN.fullmatch(model):
        return make_table_cell(model)
    schema, dot, rest = model.rpartition(".")
    return SafeMarkdown(f"{make_table_cell(schema + dot)}<br>{make_table_cell(rest)}")


def describe_changed_columns(diff: DiffView) -> SafeMarkdown:
    """Which columns changed, each kind on a line, and how far the comparison goes."""
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
        parts.append(_describe_part(diff.coverage))
    return SafeMarkdown("<br>".join(parts))


def render_row_bar(diff: DiffView) -> SafeMarkdown:
    """A bar of the rows that changed, and how many there are, gone and new."""
    if diff.state == "empty":
        return SafeMarkdown(SENTENCES.no_rows)
    counts = f"{_format_number(diff.only_prod)} gone, {_format_number(diff.only_pr)} new"
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


def _format_number(value: int | None) -> str:
    return "–" if value is None else words.format_number(value)


def _describe_part(days: tuple[int, int] | None) -> str:
    if days is None or days[0] >= days[1]:
        return "not all of `prod`'s intervals"
    return f"compared: {words.format_number(days[0])} of {words.format_count(days[1], 'day')}"


def describe_value_change(column: ColumnMatch, rows: tuple[int, int]) -> SafeMarkdown:
    """How the values of a column changed, from aggregates of both sides; a dash where unknown.

    Args:
        rows: Of prod and of the PR, that were compared.
    """
    old, new = column.prod, column.pr
    if old is None or new is None:
        return SafeMarkdown("–")
    parts = []
    for name, before, after in (
        ("mean", _shorten_number(old.mean), _shorten_number(new.mean)),
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
        parts.append(f"about {_format_count(old)} → {_format_count(new)} distinct values")
    return SafeMarkdown(" · ".join(parts) or "other values, spread as before")


def _get_ratio(part: int, whole: int) -> float:
    return min(part / whole, 1.0) if whole else 0.0


def _format_count(profile: Profile) -> str:
    return words.format_number(profile.distinct or 0)


def _shorten_number(value: float | None) -> str:
    """A number with few digits: 12.35, 1,204, 0.00012."""
    if value is None:
        return "none"
    if abs(value) >= 10**_DIGITS or value == int(value):
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.3g}"  # noqa: PLR2004 - digits
    return f"{value:,.{_DIGITS}g}"


def _format_extreme(text: str | None) -> str:
    """A smallest or largest value: a number shortened, a time as it stands."""
    if text is None:
        return "none"
    try:
        number = Decimal(text)
    except InvalidOperation:
        return make_table_cell(text, 40)
    return _shorten_number(float(number)) if number.is_finite() else make_table_cell(text, 40)


def list_failed_audits(models: Sequence[AppliedModel], *, blocking: bool) -> list[SafeMarkdown]:
    """Each audit that failed: its name and model, its rows, and whether prod has them."""
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
