"""The one place where SQLMesh's macro evaluator evaluates Python that it made from SQL."""

from __future__ import annotations

import builtins
from typing import Any

from sqlglot.executor.env import ENV
from sqlmesh.core import macros

from ci_bot.worker.compat.macro_code import CONVERTERS, objection
from ci_bot.worker.words.problems import MacroRefusedError


def judge_macro_code() -> None:
    """Lets the macros of this process evaluate only what comes from SQL that means SQL.

    To be called before anything of a project is loaded. The text of the changed files is judged
    before as well, by a process that loads nothing, and gives file and line. But an argument may be
    made by another macro, by a template or by a variable of the configuration, and only here is it
    known what it became. So nothing has to be waited for and nothing has to be believed: whatever
    made the Python, it is judged at the moment it would run. A file of the base branch that does
    the same is refused too; SQL that means SQL never makes such Python.

    (`MacroEvaluator.eval_expression` in `core/macros.py` calls `eval`, which it looks up in its own
    module first.)
    """
    macros.eval = _judged_eval  # type: ignore[attr-defined]


def _judged_eval(source: Any, variables: dict[str, Any], local_variables: dict[str, Any]) -> Any:
    def may_call(name: str) -> bool:
        found = local_variables.get(name, variables.get(name))
        if found is None:
            # Nothing that is known by this name, unless Python itself does.
            return name in CONVERTERS or not hasattr(builtins, name)
        return found is ENV.get(name) or getattr(found, "__globals__", None) is variables

    told = objection(source, may_call) if isinstance(source, str) else "there is no text"
    if told is not None:
        raise MacroRefusedError(told)
    return builtins.eval(source, variables, local_variables)  # noqa: S307 - it was judged above
