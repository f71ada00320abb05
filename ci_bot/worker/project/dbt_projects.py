"""dbt projects, which SQLMesh reads with a separate part, and why one cannot be read here."""

from __future__ import annotations

import re
import traceback
from pathlib import Path

import sqlmesh

from ci_bot.errors import BadInput
from ci_bot.worker.messages import iterate_causes

_DBT_PART = Path(sqlmesh.__file__).parent / "dbt"
# SQLMesh's message for a dbt target that it has no class for. (`TargetConfig.load`)
_NO_TARGET = re.compile(r"^(?P<target>[\w-]+) not supported\.?$")


def find_dbt_failure(error: BaseException) -> BadInput | None:
    """Makes the failure of SQLMesh's dbt reader; None if `error` has another source."""
    for link in iterate_causes(error):
        if not _was_raised_by_dbt_part(link):
            continue
        if isinstance(link, ModuleNotFoundError):
            return BadInput(
                f"This is a dbt project, which needs dbt, and `{link.name}` is not installed here.",
                hint="Add `sqlmesh[dbt]` and the dbt adapter of the project's target to the file "
                "that the input `requirements` names.",
                reason_code="dbt_project",
            )
        if (found := _NO_TARGET.match(str(link).strip())) is not None:
            return BadInput(
                f"This is a dbt project, which has the target `{found['target']}`, and SQLMesh "
                "knows no such target of dbt's.",
                hint="SQLMesh has none for Spark. A project that is to be built on Spark takes a "
                "target that SQLMesh knows, and a gateway with `type: spark` beside it.",
                reason_code="dbt_project",
            )
    return None


def _was_raised_by_dbt_part(error: BaseException) -> bool:
    return any(
        Path(frame.f_code.co_filename).is_relative_to(_DBT_PART)
        for frame, _ in traceback.walk_tb(error.__traceback__)
    )
