"""Rules on one model as it stands, as classes of SQLMesh's linter; a module that is imported here
takes part.

A project can use them in its own `linter/` directory:

    from ci_bot.worker.rules.models import *  # noqa: F403 - an example

and name them in `linter.rules` or `linter.warn_rules`, by their class in lower case.
"""

from __future__ import annotations

from ci_bot.worker.rules.models import (
    current_time,
    declarations,
    dimensions_and_variables,
    hard_deletes,
    intervals,
    join_fan_out,
    keys,
    query_shape,
    storage,
    unordered_aggregates,
)
from ci_bot.worker.rules.models.linter_rule import MODEL_RULES

# What the import with a star gives: SQLMesh's linter looks for classes in the project's module.
globals().update({kind.__name__: kind for kind in MODEL_RULES})
__all__ = sorted(kind.__name__ for kind in MODEL_RULES)  # noqa: PLE0605 - made of the registry
