"""Signals: may a model run already?"""
import typing as t

from sqlmesh import DatetimeRanges, ExecutionContext, signal


@signal()
def export_done(batch: DatetimeRanges, context: ExecutionContext, source: str) -> t.Union[bool, DatetimeRanges]:
    """The transport system writes the day in one export, some hours after midnight."""
    newest = context.fetchdf(f"SELECT MAX(updated_ts) AS newest FROM {source}")["newest"].iloc[0]
    return not newest != newest
