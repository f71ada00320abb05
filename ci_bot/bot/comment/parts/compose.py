"""Puts a comment together: the marker, the template's frame, the sections as far as they fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ci_bot.bot.comment import marker as markers
from ci_bot.bot.comment.context import CommentContext, Rendered
from ci_bot.bot.comment.parts.blocks import tidy, trim
from ci_bot.bot.comment.parts.budget import Piece, Share, cut_names, first_pieces, fit
from ci_bot.bot.comment.text.links import Links
from ci_bot.bot.comment.text.markdown import SafeMarkdown, link
from ci_bot.bot.comment.text.templating import environment

# The marker names the cuts, which are known only when everything else is done.
_CUT_NAMES_BYTES = 400
CELL_LIMIT = 400


def compose(
    template: str,
    values: dict[str, Any],
    shares: Sequence[Share],
    context: CommentContext,
    budget: int | None,
) -> Rendered:
    """The text of `template` with at most `budget` bytes; None means complete.

    Raises:
        jinja2.UndefinedError: a template names something that `values` does not have.
    """
    source = environment().get_template(template)

    def render(pieces: dict[str, Piece]) -> str:
        return tidy(source.render(values | {"c": context, "pieces": pieces}))

    pieces = first_pieces(shares, budget)
    frame = render({name: replace(p, text=SafeMarkdown("")) for name, p in pieces.items()})
    head = _marker_line(context, [])
    reserved = len(head.encode()) + _CUT_NAMES_BYTES
    pieces = fit(len(frame.encode()) + reserved, shares, pieces, budget)
    cut = cut_names(pieces)
    text = render(pieces)
    if budget is not None and len(text.encode()) > budget - reserved:
        # Only names and reasons of absurd length get here; whole blocks go, from the end.
        text = trim(text, budget - reserved)[0] + "\n"
        cut = [*cut, "frame"]
    return Rendered(_marker_line(context, cut) + text, cut)


def _marker_line(context: CommentContext, cut: list[str]) -> str:
    if context.marker is None:
        return ""
    return markers.encode(context.marker.model_copy(update={"cut": cut})) + "\n"


def full_report(context: CommentContext) -> SafeMarkdown:
    """How a note of a cut calls the place where nothing is cut."""
    return link(SafeMarkdown("the full report"), context.report_url)


def row_of(name: str) -> Callable[..., str]:
    """The macro `name` of the rows' template."""
    macro = getattr(environment().get_template("_rows.md.j2").module, name)

    def rendered(*args: Any) -> str:
        return str(macro(*args)).strip("\n")

    return rendered


def row(name: str, *args: Any) -> Callable[[Any], str]:
    """The macro `name` of the rows' template as a function of one item."""
    macro = row_of(name)
    return lambda item: macro(item, *args)


def base_values(context: CommentContext, head: str | None = None) -> dict[str, Any]:
    """What every template of a comment may use."""
    return {"v": None, "carried": None, "links": Links(context, head), "earlier_head": None}
