"""The sentence about existing rows that come out differently: what of them, and who reads it."""

from __future__ import annotations

from ci_bot.bot.report.model import words
from ci_bot.bot.report.model.words import list_names, quote_name
from ci_bot.protocol.changed_rows import read_past_numbers
from ci_bot.protocol.review_report import ChangedRows, PastNumbers, Report

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
