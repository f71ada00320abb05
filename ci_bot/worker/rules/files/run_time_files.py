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
_WORD = re.compile(r"\w+")


@on_project(CHANGED_IN_RUNS)
def find_changed_run_time_files(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Changed files that the code of an unchanged model names, and that no load has opened.

    What the load opens is in the rendered query or the stored code, and the plan compares it.
    """
    opened = {os.path.normpath(path) for path in inputs.opened}
    unread = [
        path
        for path in inputs.changed_files or ()
        if (suffix := PurePosixPath(path).suffix)
        and suffix not in _DOCUMENTS
        and os.path.normpath(inputs.repository / path) not in opened
    ]
    # Rendered once, and only if a file may be named: a project may have thousands of both.
    code = _collect_unchanged_code(inputs) if unread else {}
    words = {word for text in code.values() for word in _WORD.findall(text)}
    for path in unread:
        name = PurePosixPath(path).name
        if not words.issuperset(_WORD.findall(name)):
            continue
        named = re.compile(rf"(?<![\w-]){re.escape(name)}(?!\w)")
        for fqn, text in code.items():
            if not named.search(text):
                continue
            yield RuleObservation(
                CHANGED_IN_RUNS,
                f"The model's code names {quote_names([path])}, which the load does not read: the "
                "next run takes its new content. SQLMesh sees no change and builds nothing, so an "
                "apply does not show it.",
                BUILT_AGAIN,
                model=inputs.after[fqn],
                path=path,
                line=1,
                subject=(path,),
            )


def _collect_unchanged_code(inputs: RuleInputs) -> dict[str, str]:
    """The stored code and the statements of each model that the plan takes for unchanged."""
    return {
        fqn: "\n".join(_list_code(model))
        for fqn, model in sorted(inputs.after.items())
        if _is_unchanged(inputs.before.get(fqn), model)
    }


def _is_unchanged(before: Model | None, after: Model) -> bool:
    return before is not None and bool(before.data_hash == after.data_hash)


def _list_code(model: Model) -> list[str]:
    if is_seed_model(model):
        return []  # its content is in its hash
    code = [item.payload for item in model.python_env.values()]
    if is_sql_model(model):
        code += [
            part.sql(dialect=model.dialect, comments=False)
            for part in (model.query, *model.pre_statements, *model.post_statements)
        ]
    return code
