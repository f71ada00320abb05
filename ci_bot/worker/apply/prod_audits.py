"""Whether prod has what an audit has found: the same query, asked of prod's views.

It tells a mistake of the change from one that was there before. Nothing but a count leaves the
warehouse.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ci_bot.worker.apply.account.recorder import Recorder
from ci_bot.worker.apply.diff.spec import DiffPort, SqlError
from ci_bot.worker.warehouse.catalog import Relation
from ci_bot.worker.words.problems import sentence

NEW_MODEL = "The model is new: prod does not have it."
_LINE = 1_000


def ask_prod(
    recorder: Recorder, port: DiffPort, adapter: Any, there: Mapping[str, Relation]
) -> None:
    """Asks prod each failed audit of an apply, and enters what it answers.

    Args:
        there: Prod's views, by the name of their model.
    """
    tables = {name: view.sql for name, view in there.items()}
    for model, key, question in recorder.failed_audits():
        rows, why = None, None
        if question.snapshot.name not in tables:
            why = NEW_MODEL
        else:
            try:
                rows = int(port.rows(question.sql(adapter, tables))[0][0])
            except SqlError as error:
                # Most often a column that prod's view does not have.
                why = str(error)[:_LINE]
            except Exception as error:
                why = f"The audit could not be rendered for prod: {sentence(error)}"[:_LINE]
        recorder.prod_answered(model, key, rows, why)
