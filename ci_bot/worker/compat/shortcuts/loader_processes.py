"""What the processes that load SQL files do beside loading: they compare models with prod's, and
send those that are defined as in prod without the trees of their queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

from sqlmesh.core import loader

from ci_bot.worker.compat.shortcuts.plain_models import is_pure, lists_columns
from ci_bot.worker.compat.shortcuts.prod_models import Stored, has_hashes, tell
from ci_bot.worker.compat.shortcuts.queries_in_files import leave_in_file

_load = loader.load_sql_models
# What the processes of a pool find in their memory: they are forked, and the pool knows the
# function by its name.
_stored: dict[str, Stored] = {}


@contextmanager
def compared_where_loaded(stored: Mapping[str, Stored]) -> Iterator[None]:
    """Lets every process that loads files inside this block compare. A model that
    is defined as in prod comes with a `QueryInFile`, prod's columns, and no hashes.
    """
    module: Any = loader
    _stored.update(stored)
    module.load_sql_models = load_and_compare
    try:
        yield
    finally:
        module.load_sql_models = _load
        _stored.clear()


def load_and_compare(path: Path) -> list[Any]:
    """The models of a file. (`load_sql_models`)"""
    models: list[Any] = _load(path)
    # With one process nothing is sent; a file of several models cannot tell whose query is whose.
    if len(models) == 1 and parent_process() is not None:
        (model,) = models
        stored = _stored.get(model.fqn)
        if stored is not None and is_pure(model):
            tell(model, stored.schema)
            if has_hashes(model, stored.fingerprint):
                defaults: Any = loader._defaults
                leave_in_file(
                    model,
                    file_dialect=defaults["dialect"] or "",
                    lists_columns=lists_columns(model),
                )
            else:
                tell(model, {})
    return models
