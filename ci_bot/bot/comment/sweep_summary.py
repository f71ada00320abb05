"""A sweep's report as Markdown, for the step summary and the terminal."""

from __future__ import annotations

from ci_bot.bot.comment.context import CommentContext
from ci_bot.bot.comment.parts.blocks import tidy
from ci_bot.bot.comment.text.markdown import SafeMarkdown, link
from ci_bot.bot.comment.text.templating import environment
from ci_bot.contracts.documents.sweep import SweepReport

# A state of thousands of environments must not lose the whole summary to the runner's limit.
MOST_ROWS = 500
_GONE = ("removed", "nothing_to_do")


def render_sweep(report: SweepReport, context: CommentContext) -> str:
    """The whole report as Markdown; `context` says where links lead and what time it is."""
    rescued = [row for row in report.rows if row.standing == "remove"]
    # Of environments that were removed before.
    tables = [row for row in report.rows if row.standing == "tables"]
    kept = [row for row in report.rows if row.standing not in ("remove", "tables")]
    template = environment().get_template("sweep.md.j2")
    return tidy(
        template.render(
            s=report,
            c=context,
            rescued=rescued,
            tables=tables,
            left=[row for row in [*rescued, *tables] if row.result not in _GONE],
            kept=kept,
            most=MOST_ROWS,
            pull=lambda number: _pull(context, number),
        )
    )


def _pull(context: CommentContext, number: int | None) -> SafeMarkdown:
    if number is None:
        return SafeMarkdown("–")
    root = f"{context.server_url.rstrip('/')}/{context.repository}" if context.repository else None
    # Without a link GitHub would make a reference of it, which is the same place.
    return link(SafeMarkdown(f"#{number}"), f"{root}/pull/{number}" if root else None)
