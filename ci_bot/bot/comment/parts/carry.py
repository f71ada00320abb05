"""An earlier review taken out of our own comment, for runs that have no report to render again."""

from __future__ import annotations

from ci_bot.bot.comment.context import Carried
from ci_bot.bot.comment.parts.blocks import lift
from ci_bot.contracts.documents.comment import Marker


def carried(body: str, marker: Marker | None) -> Carried | None:
    """The review in `body`, a comment that is known to be ours; None where it holds none.

    Never call it with somebody else's comment: the text goes into the next one as it is.
    """
    text = lift(body)
    if not text:
        return None
    return Carried(
        text=text,
        head=marker.head if marker else None,
        plan=marker.plan if marker else None,
        decision=marker.decision if marker else None,
    )
