"""Window functions as terms: their frames, written in full, and the function itself."""

from __future__ import annotations

from sqlglot import exp

from ci_bot.worker.sql import spark_sql
from ci_bot.worker.sql.equivalence.blocks import Term, TermOperation

_ENDS = ("start", "end")
_WHOLE = "UNBOUNDED PRECEDING UNBOUNDED FOLLOWING"


def write_frame_in_full(frame: exp.Expr | None, function: exp.Expr, *, ordered: bool) -> str:
    """Writes a frame in full, as SQL completes a missing one.

    A frame goes up to the current row. Without a frame it goes up to the row's peers, or is the
    whole partition if there is no order.
    """
    only = spark_sql.find_only_frame(function)
    if frame is None:
        return only if only is not None else spark_sql.UP_TO_PEERS if ordered else _WHOLE
    text = spark_sql.spell_frame(frame)
    kind, _, extent = text.partition(" ")
    is_whole = extent == _WHOLE and kind in ("ROWS", "RANGE", "GROUPS") and only is None
    return _WHOLE if is_whole else text


def list_computed_frame_ends(frame: exp.Expr | None) -> list[exp.Expr]:
    """Lists the ends of a frame that are expressions, and no words such as CURRENT ROW."""
    ends = [frame.args.get(name) for name in _ENDS] if frame is not None else []
    return [end for end in ends if isinstance(end, exp.Expression)]


def make_window_function(function: Term) -> Term:
    """Makes the function of a window, which is no aggregate of the SELECT."""
    if not isinstance(function, TermOperation):
        return function
    plain = TermOperation(function.op, function.parts, function.order, ordered=function.ordered)
    plain.aggregated = any(isinstance(p, TermOperation) and p.aggregated for p in function.parts)
    return plain
