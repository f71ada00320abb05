"""What the loader of SQLMesh keeps to itself: every model that fails, and not the first alone."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlmesh.core import loader
from sqlmesh.core.macros import macro
from sqlmesh.core.signal import signal
from sqlmesh.utils.errors import ConfigError


@contextmanager
def model_failures(found: list[tuple[Path, BaseException]]) -> Iterator[None]:
    """Notes each SQL model that does not load while this is entered.

    SQLMesh hands all files to a pool, and raises the failure that it meets first.
    (`SqlMeshLoader._load_sql_models`, `create_process_pool_executor`)
    """
    module: Any = loader
    make = module.create_process_pool_executor

    def pool(*arguments: Any, **options: Any) -> Any:
        made = make(*arguments, **options)
        submit = made.submit

        def noting(work: Any, path: Path) -> Future[Any]:
            future: Future[Any] = submit(work, path)
            future.add_done_callback(lambda done: note(path, done))
            return future

        made.submit = noting
        return made

    def note(path: Path, done: Future[Any]) -> None:
        error = None if done.cancelled() else done.exception()
        if error is not None:
            found.append((path, error))

    module.create_process_pool_executor = pool
    try:
        yield
    finally:
        module.create_process_pool_executor = make


def load_error(path: Path, problem: BaseException) -> ConfigError:
    """The error that SQLMesh raises where `problem` keeps the model in `path` from being loaded.

    (`Loader._failed_to_load_model_error`, which needs nothing of the loader itself)
    """
    text = loader.Loader._failed_to_load_model_error(None, path, problem)  # type: ignore[arg-type]
    error = ConfigError(text, path)
    error.__cause__ = problem
    return error


def ignore_files(configs: dict[Path, Any], files: Sequence[Path]) -> None:
    """Lets the next load leave these files out. (`Loader._glob_paths`)"""
    for config in configs.values():
        config.ignore_patterns = [
            *config.ignore_patterns,
            *(glob.escape(str(path)) for path in files),
        ]


@contextmanager
def registries_kept() -> Iterator[None]:
    """Puts back the registries of macros and signals, which a failed load leaves filled.

    (`SqlMeshLoader._load_scripts` and `_load_signals` restore them only where they come to an end)
    """
    kept = [(kind, kind.get_registry()) for kind in (macro, signal)]
    try:
        yield
    finally:
        for kind, registry in kept:
            kind.set_registry(registry)


def order_models(context: Any) -> None:
    """Puts the loaded models in the order of their names.

    SQLMesh's own order is that in which its processes come back, so what is told model by model
    would be told otherwise each time. (`SqlMeshLoader._load_sql_models`, `UniqueKeyDict`)
    """
    models = sorted(context._models.items())
    context._models.clear()
    context._models.update(models)


def loaded_tests(context: Any) -> list[Any]:
    """The project's unit tests. (`Context.select_tests` since 0.228, `load_model_tests` before)"""
    read: Any = getattr(context, "select_tests", None) or context.load_model_tests
    return list(read())
