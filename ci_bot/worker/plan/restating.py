"""Restatement in a PR environment: only of versions that the pull request itself made.

SQLMesh skips a model whose version prod uses with a warning that nobody sees, and restricts the
backfill to what is restated, so that the views of all other changed models would point at tables
that nobody built.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlmesh.core.plan import Plan

from ci_bot.errors import BadInput
from ci_bot.worker.plan.requested import SELECTOR
from ci_bot.worker.words.names import Names


def check_restated(plan: Plan, wanted: Sequence[str], names: Names) -> None:
    """Every model that is named has a version of this environment's own.

    A pattern may match models of prod as well, as long as it matches one of the environment's.

    Args:
        wanted: The values of `restate-model`; none: nothing is restated.

    Raises:
        BadInput: a version is prod's.
    """
    if not wanted:
        return
    diff: Any = plan.context_diff
    ours = {s_id.name for s_id in diff.added} | set(diff.modified_snapshots)
    selected = set(plan.selected_models_to_restate or ())
    prods = sorted(names.of(name) for name in selected - ours)
    by_name = not any(SELECTOR & set(item) for item in wanted)
    if selected and (not prods or (selected & ours and not by_name)):
        return
    shown = ", ".join(prods) or ", ".join(wanted)
    raise BadInput(
        f"`restate-model` names what this pull request does not change: {shown}. The environment "
        "has no version of its own to restate, and prod's is never written.",
        hint="Restate prod's version from a terminal: `sqlmesh plan prod --restate-model ... "
        "--start ... --end ...`.",
        reason_code="restates_prod",
    )
