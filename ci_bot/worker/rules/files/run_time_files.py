"""Files that a model reads while it runs: no hash of SQLMesh's holds their content."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ci_bot.worker.rules.changes.run_renderings import BUILT_AGAIN, CHANGED_IN_RUNS
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.observation import RuleObservation, quote_names
from ci_bot.worker.rules.registry import on_project
from ci_bot.worker.sqlmesh_compat import is_seed_model, is_sql_model

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

# Words for people: a model's code may name them, and reads no numbers from them.
_DOCUMENTS = frozenset({".md", ".rst", ".adoc"})


@on_project(CHANGED_IN_RUNS)
def find_changed_run_time_files(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Changed files that the code of an unchanged model names, and that no load has opened.

    What the load opens is in the rendered query or the stored code, and the plan compares it.
    """
    opened = {os.path.normpath(path) for path in inputs.opened}
    for path in inputs.changed_files or ():
        name = PurePosixPath(path)
        if (
            not name.suffix
            or name.suffix in _DOCUMENTS
            or os.path.normpath(inputs.repository / path) in opened
        ):
            continue
        named = re.compile(rf"(?<![\w-]){re.escape(name.name)}(?!\w)")
        readers = [
            model
            for fqn, model in sorted(inputs.after.items())
            if _is_unchanged(inputs.before.get(fqn), model) and _names_file(model, named)
        ]
        for model in readers:
            yield RuleObservation(
                CHANGED_IN_RUNS,
                f"The model's code names {quote_names([path])}, which the load does not read: the "
                "next run takes its new content. SQLMesh sees no change and builds nothing, so an "
                "apply does not show it.",
                BUILT_AGAIN,
                model=model,
                path=path,
                line=1,
                subject=(path,),
            )


def _is_unchanged(before: Model | None, after: Model) -> bool:
    return before is not None and bool(before.data_hash == after.data_hash)


def _names_file(model: Model, named: re.Pattern[str]) -> bool:
    """Whether a model's stored code or its statements hold a file's name."""
    if is_seed_model(model):
        return False  # its content is in its hash
    code = [item.payload for item in model.python_env.values()]
    if is_sql_model(model):
        code += [
            part.sql(dialect=model.dialect, comments=False)
            for part in (model.query, *model.pre_statements, *model.post_statements)
        ]
    return any(named.search(text) for text in code)
